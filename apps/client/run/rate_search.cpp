#include "apps/client/run/rate_search.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"

namespace offload::client {
namespace {

/// An untrusted measurement is repeated twice.
constexpr unsigned kMostTries = 3;

class RateSearch {
 public:
  RateSearch(const SearchLimits& limits, const Measure& measure)
      : limits_(limits), measure_(measure) {}

  SearchResult run() {
    while (narrow() && !is_settled()) {
    }
    if (!ended_) end_with_bracket();
    return std::move(result_);
  }

 private:
  /// Brackets the rate and bisects until nothing is left to be measured; false if the search has
  /// ended before.
  bool narrow() {
    while (const std::optional<double> rate = next_rate()) {
      const std::optional<bool> meets = judge(*rate);
      if (!meets) return false;
      (*meets ? result_.low : result_.high) = rate;
    }
    return true;
  }

  [[nodiscard]] std::optional<double> next_rate() const {
    const std::optional<double>& low = result_.low;
    const std::optional<double>& high = result_.high;
    if (!low && !high) return limits_.first_rate;
    if (!high) {
      if (*low >= limits_.highest) return {};
      return std::min(*low * 2, limits_.highest);
    }
    if (!low) {
      if (*high <= limits_.lowest) return {};
      return std::max(*high / step_down_, limits_.lowest);
    }
    if (*high / *low <= 1 + limits_.precision) return {};
    return std::sqrt(*low * *high);
  }

  /// Confirms both ends of the bracket. True if they stand or the search has ended, false if the
  /// bracket has changed.
  bool is_settled() {
    if (result_.high && result_.high != unconfirmed_) {
      const std::optional<bool> meets = judge(*result_.high);
      if (!meets) return true;
      if (*meets) {
        result_.low = std::exchange(result_.high, std::nullopt);
        return false;
      }
    }
    if (!result_.low) return true;
    for (int attempt = 0; attempt < 2; ++attempt) {
      const std::optional<bool> meets = measure_once(*result_.low);
      if (!meets || *meets) return true;
    }
    unconfirmed_ = result_.high = std::exchange(result_.low, std::nullopt);
    step_down_ = 1 + limits_.precision;
    return false;
  }

  /// Returns whether the majority of the measurements at a rate meets the bound. Nothing if the
  /// search has ended.
  std::optional<bool> judge(double rate) {
    const unsigned majority = limits_.repeats / 2 + 1;
    unsigned met = 0;
    unsigned failed = 0;
    while (met < majority && failed + majority <= limits_.repeats) {
      const std::optional<bool> meets = measure_once(rate);
      if (!meets) return {};
      ++(*meets ? met : failed);
    }
    return met == majority;
  }

  /// Returns whether one trusted measurement meets the bound. Nothing if the search has ended.
  std::optional<bool> measure_once(double rate) {
    for (unsigned attempt = 0; attempt < kMostTries; ++attempt) {
      if (result_.steps.size() == kMostMeasurements) {
        return end(SearchEnd::unsettled,
                   fmt::format("{} measurements contradict each other", kMostMeasurements));
      }
      const std::optional<Measured> measured = measure_(rate);
      if (!measured) return end(SearchEnd::interrupted, "the search was interrupted");
      if (record(rate, *measured).measured.trusted) return result_.steps.back().meets;
    }
    if (result_.steps.back().measured.too_few) {
      return end(SearchEnd::too_few,
                 fmt::format("too few requests for a verdict at {:g} requests/s: use a longer "
                             "--duration or begin with a higher --rate",
                             rate));
    }
    return end(SearchEnd::client_late,
               fmt::format("the client is the limit: it was late {} times at {:g} requests/s",
                           kMostTries, rate));
  }

  const SearchStep& record(double rate, const Measured& measured) {
    auto& steps = result_.steps;
    const auto repeat = std::ranges::count(steps, rate, &SearchStep::offered_per_second);
    const bool meets =
        measured.trusted && measured.kept_up && measured.latency_us <= limits_.bound_us;
    return steps.emplace_back(SearchStep{rate, static_cast<unsigned>(repeat), measured, meets});
  }

  std::nullopt_t end(SearchEnd how, std::string reason) {
    ended_ = true;
    result_.end = how;
    result_.reason = std::move(reason);
    return std::nullopt;
  }

  void end_with_bracket() {
    result_.rate = result_.low;
    if (!result_.low) {
      end(SearchEnd::lowest_fails,
          fmt::format("even {:g} requests/s exceed the bound", limits_.lowest));
    } else {
      end(result_.high ? SearchEnd::found : SearchEnd::highest_meets, "");
    }
  }

  SearchLimits limits_;
  const Measure& measure_;
  SearchResult result_;
  std::optional<double> unconfirmed_;  // the rate that confirmation has ruled out last
  double step_down_ = 2;               // while no rate has met the bound
  bool ended_ = false;
};

void require(bool condition, const char* what) {
  if (!condition) throw core::Error(core::ErrorCode::invalid_value, what);
}

}  // namespace

SearchResult search_rate(const SearchLimits& limits, const Measure& measure) {
  // Written so that a NaN is out of range.
  require(limits.lowest > 0 && std::isfinite(limits.highest),
          "the rates of a search must be above 0 and finite");
  require(limits.lowest <= limits.first_rate && limits.first_rate <= limits.highest,
          "a search must begin between its lowest and its highest rate");
  require(limits.bound_us > 0, "the bound of the latency must be above 0");
  require(limits.precision >= 0.001 && limits.precision <= 1, "the precision must be 0.001 to 1");
  require(limits.repeats >= 1 && limits.repeats <= 99, "1 to 99 repeats");
  return RateSearch(limits, measure).run();
}

}  // namespace offload::client
