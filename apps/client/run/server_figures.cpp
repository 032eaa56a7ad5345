#include "apps/client/run/server_figures.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.hpp"
#include "net/http_client.hpp"

namespace offload::client {
namespace {

constexpr core::Duration kLimit = core::seconds(5);

/// The quantile `share` of counts by bucket, as if what is in a bucket were evenly spread. Beyond
/// the last bound: that bound. Nothing of fewer than `fewest`.
std::optional<double> quantile_us(const std::vector<std::uint64_t>& counts,
                                  const std::vector<std::uint64_t>& bounds_ns, double share,
                                  std::uint64_t fewest) {
  const auto all = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (all < fewest) return std::nullopt;
  double left = share * static_cast<double>(all);
  for (std::size_t i = 0; i < bounds_ns.size() && i < counts.size(); ++i) {
    const auto count = static_cast<double>(counts[i]);
    if (count > 0 && left <= count) {
      const double low = i == 0 ? 0 : static_cast<double>(bounds_ns[i - 1]);
      return (low + (static_cast<double>(bounds_ns[i]) - low) * left / count) / 1e3;
    }
    left -= count;
  }
  return bounds_ns.empty() ? 0 : static_cast<double>(bounds_ns.back()) / 1e3;
}

}  // namespace

ServerFigures read_server_figures(const std::string& status) {
  try {
    const auto all = nlohmann::json::parse(status);
    if (all.at("program") != "offload-server") {
      throw core::Error(core::ErrorCode::bad_message, "it is not an offload-server");
    }
    const auto& state = all.at("state");
    const auto& totals = state.at("totals");
    ServerFigures figures;
    all.at("process").get_to(figures.process);
    totals.at("requests").get_to(figures.requests);
    totals.at("responses").get_to(figures.responses);
    totals.at("errors").get_to(figures.errors);
    state.at("bounds_ns").get_to(figures.bounds_ns);
    for (const auto& [name, counts] : state.at("stages").items()) {
      figures.stages.push_back({name, counts.get<std::vector<std::uint64_t>>()});
    }
    for (const auto& thread : state.at("threads")) {
      figures.busy_ns += thread.at("busy_ns").get<std::uint64_t>();
      figures.poll_ns += thread.at("poll_ns").get<std::uint64_t>();
      figures.sleep_ns += thread.at("sleep_ns").get<std::uint64_t>();
    }
    return figures;
  } catch (const nlohmann::json::exception&) {
    throw core::Error(core::ErrorCode::bad_message,
                      "its reply is not the status of an offload-server");
  }
}

ServerFigures scrape(const std::string& address) {
  try {
    const auto answer = net::ask({"http://" + address + "/status", {}, {}}, kLimit);
    if (answer.status != 200) {
      throw core::Error(core::ErrorCode::bad_message, fmt::format("it returned {}", answer.status));
    }
    return read_server_figures(answer.body);
  } catch (const core::Error& error) {
    throw core::Error(error.code(), fmt::format("--scrape {}: {}", address, error.what()));
  }
}

ServerShare between(const ServerFigures& before, const ServerFigures& after) {
  if (before.process != after.process || before.stages.size() != after.stages.size()) {
    throw core::Error(core::ErrorCode::bad_state,
                      "--scrape: the server was restarted during the run");
  }
  ServerShare share{};
  share.requests = after.requests - before.requests;
  share.responses = after.responses - before.responses;
  share.errors = after.errors - before.errors;
  for (std::size_t i = 0; i < after.stages.size(); ++i) {
    auto counts = after.stages[i].counts;
    const auto& former = before.stages[i].counts;
    for (std::size_t j = 0; j < counts.size() && j < former.size(); ++j) counts[j] -= former[j];
    share.stages.push_back({after.stages[i].name,
                            std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}),
                            quantile_us(counts, after.bounds_ns, 0.5, 1),
                            quantile_us(counts, after.bounds_ns, 0.99, 100)});
  }
  const auto busy = static_cast<double>(after.busy_ns - before.busy_ns);
  const auto polling = static_cast<double>(after.poll_ns - before.poll_ns);
  const auto asleep = static_cast<double>(after.sleep_ns - before.sleep_ns);
  const double all = std::max(busy + polling + asleep, 1.0);
  share.busy = busy / all;
  share.polling = polling / all;
  share.asleep = asleep / all;
  return share;
}

std::string make_text(const ServerShare& share) {
  std::string text = fmt::format(
      "Server:                   {} requests, {} responses, {} errors; I/O threads busy {:.0f} %, "
      "polling {:.0f} %, asleep {:.0f} %\n",
      share.requests, share.responses, share.errors, 100 * share.busy, 100 * share.polling,
      100 * share.asleep);
  const auto shown = [](const std::optional<double>& us) {
    return us ? fmt::format("{:.1f}", *us) : std::string("-");
  };
  for (const auto& stage : share.stages) {
    text += fmt::format("  {:<8} (us)            p50 {}, p99 {}, of {} requests timed\n",
                        stage.name, shown(stage.p50_us), shown(stage.p99_us), stage.count);
  }
  return text;
}

}  // namespace offload::client
