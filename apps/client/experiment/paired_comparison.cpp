#include "apps/client/experiment/paired_comparison.hpp"

#include <fmt/core.h>

#include <cmath>

namespace offload::client {
namespace {

using Verdict = Answer::Verdict;

bool is_more_than(double share, std::uint64_t count, const SliceCounts& counts) {
  return static_cast<double>(count) > share * static_cast<double>(counts.slices);
}

std::string late_text(const SliceCounts& base, const SliceCounts& compared) {
  return fmt::format("in {} of {} slices of BASE and {} of {} of NEW", base.client_late,
                     base.slices, compared.client_late, compared.slices);
}

Answer cannot_tell(const std::string& why) {
  return {Verdict::cannot_tell, "cannot be told: " + why};
}

}  // namespace

PairedComparison::PairedComparison(const ComparisonRules& rules) : rules_(rules) {
  constexpr double kBeside = (kWrong - kWrongOfDeciding) / (kSliceFigures - 1);
  for (std::size_t i = 0; i < kSliceFigures; ++i) {
    ratios_.emplace_back(i == index(rules.figure) ? kWrongOfDeciding : kBeside);
  }
}

void PairedComparison::add(const SliceFigures& base, const SliceFigures& compared) {
  ++pairs_;
  for (std::size_t i = 0; i < kSliceFigures; ++i) {
    if (base.us[i] <= 0 || compared.us[i] <= 0) continue;
    ratios_[i].add(std::log(compared.us[i]) - std::log(base.us[i]));
  }
}

metrics::Estimate PairedComparison::ratio(SliceFigure figure) const {
  const metrics::Estimate logs = ratios_[index(figure)].estimate();
  return {std::exp(logs.middle), std::exp(logs.low), std::exp(logs.high)};
}

bool PairedComparison::is_known() const {
  const metrics::Estimate logs = ratios_[index(rules_.figure)].estimate();
  const double tolerance = std::log1p(rules_.tolerance);
  if (logs.low >= -tolerance && logs.high <= tolerance) return true;
  if (logs.low < tolerance && logs.high > -tolerance) return false;
  // The difference is beyond the tolerance. It is worth a statement once it is known to a quarter.
  return (logs.high - logs.low) / 2 <= std::max(tolerance, std::abs(logs.middle) / 4);
}

std::string PairedComparison::difference(SliceFigure figure) const {
  const metrics::Estimate found = ratio(figure);
  const auto percent = [](double of) { return 100 * std::abs(of - 1); };
  const bool slower = found.middle > 1;
  return fmt::format("{:.1f} % {} ({:.1f} to {:.1f})", percent(found.middle),
                     slower ? "slower" : "faster", percent(slower ? found.low : found.high),
                     percent(slower ? found.high : found.low));
}

Answer PairedComparison::answer(const SliceCounts& base, const SliceCounts& compared) const {
  if (is_more_than(kMostLate, base.client_late, base) ||
      is_more_than(kMostLate, compared.client_late, compared)) {
    return cannot_tell("this client was late " + late_text(base, compared));
  }
  if (is_more_than(kMostLate, base.server_late, base)) {
    return cannot_tell(fmt::format("BASE did not keep up with the load in {} of {} slices",
                                   base.server_late, base.slices));
  }
  if (is_more_than(kMostLate, compared.server_late, compared)) {
    return {Verdict::slower,
            fmt::format("slower: NEW did not keep up with the load in {} of {} slices, BASE in {}",
                        compared.server_late, compared.slices, base.server_late)};
  }
  const metrics::Estimate found = ratio(rules_.figure);
  const double tolerance = 1 + rules_.tolerance;
  const bool is_equal = found.low >= 1 / tolerance && found.high <= tolerance;
  if (!is_equal && found.low > 1) return {Verdict::slower, difference(rules_.figure)};
  for (std::size_t i = 0; i < kSliceFigures; ++i) {
    const auto figure = static_cast<SliceFigure>(i);
    if (ratio(figure).low > 1 + kTolerancesBeside * rules_.tolerance) {
      return {Verdict::slower,
              fmt::format("{} in the {}", difference(figure), kSliceFigureNames[i])};
    }
  }
  if (is_equal && (is_more_than(0.5, base.client_busy, base) ||
                   is_more_than(0.5, compared.client_busy, compared))) {
    return cannot_tell("this client had no time left, so it may be what is equal (increase -t)");
  }
  if (is_equal) return {Verdict::equal, fmt::format("equal within {:g} %", 100 * rules_.tolerance)};
  if (found.high < 1) return {Verdict::faster, difference(rules_.figure)};
  return {Verdict::cannot_tell, "cannot be told within the time given"};
}

}  // namespace offload::client
