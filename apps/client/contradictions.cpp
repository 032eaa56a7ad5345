#include "apps/client/contradictions.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace offload::client {
namespace {

std::string wrong_load(const cli::CommandLine& line, const Options& options) {
  // A schedule gives the times, sizes and number of requests.
  for (const char* const option :
       {"--arrivals", "--iteration-count", "--search", "--message-string", "--size", "--mix",
        "--uniform-size", "--size-file"}) {
    if (!options.schedule.empty() && line.has(option)) {
      return fmt::format("--schedule excludes {}", option);
    }
  }
  const bool scans_rates = options.scan && options.scan->of == Scan::Of::rate;
  if (scans_rates && !options.schedule.empty()) return "--schedule excludes --scan rate";
  if (scans_rates && options.rate) return "--scan rate excludes --rate";
  for (const char* const option : {"--arrivals", "--lag-tolerance"}) {
    if (line.has(option) && !options.is_open_loop()) {
      return fmt::format("{} requires an open loop (--rate)", option);
    }
  }
  if (line.has("--payload") && !options.has_sizes()) return "--payload requires a size (--size)";
  if (line.has("--warmup") && !options.duration && options.schedule.empty()) {
    return "--warmup requires --duration";
  }
  for (const char* const option : {"--repeat", "--scan", "--search"}) {
    if (options.start_at && line.has(option)) return fmt::format("--start-at excludes {}", option);
  }
  double highest = options.rate.value_or(0);
  if (scans_rates)
    highest = *std::max_element(options.scan->values.begin(), options.scan->values.end());
  if (highest > kHighestThreadRate * options.thread_count) {
    return fmt::format("{}: a thread sends at most {:.0f} requests a second (increase -t)",
                       scans_rates ? "--scan" : "--rate", kHighestThreadRate);
  }
  return {};
}

/// Checks options that apply to connections but not to datagrams.
std::string wrong_by_udp(const cli::CommandLine& line, const Options& options) {
  for (const char* const option : {"--tls", "--reconnect-every", "--connect-timeout", "--scrape"}) {
    if (options.udp && line.has(option)) return fmt::format("--udp excludes {}", option);
  }
  return {};
}

/// Two results in one file, or a text for people and one for programs on standard output.
std::string wrong_file(const Options& options) {
  const std::string* const files[] = {&options.output, &options.histogram_log, &options.csv,
                                      &options.request_log};
  for (std::size_t i = 0; i < std::size(files); ++i) {
    if (i != 0 && *files[i] == "-") return "only --output can be standard output";
    for (std::size_t other = 0; other < i; ++other) {
      if (!files[i]->empty() && *files[i] == *files[other]) {
        return fmt::format("'{}' is given for two results; each needs a separate file", *files[i]);
      }
    }
  }
  return {};
}

}  // namespace

std::string contradiction_in(const cli::CommandLine& line, const Options& options) {
  std::string wrong = wrong_by_udp(line, options);
  if (wrong.empty()) wrong = wrong_load(line, options);
  return wrong.empty() ? wrong_file(options) : wrong;
}

}  // namespace offload::client
