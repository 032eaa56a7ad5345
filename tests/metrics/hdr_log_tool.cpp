#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>

#include "metrics/hdr_log.hpp"

/// A tool of hdr_live_test.py. "write": each line "TAG START LENGTH LATENCY..." of the input
/// becomes an interval of a log. "read": each interval of a log becomes a line "TAG START LENGTH
/// BUCKET:COUNT...".
namespace {

using offload::metrics::LatencyHistogram;

void write_log() {
  std::cout << offload::metrics::hdr_log_header(0);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string tag;
    double start = 0;
    double length = 0;
    words >> tag >> start >> length;
    LatencyHistogram histogram;
    for (std::int64_t latency = 0; words >> latency;) {
      histogram.record(std::chrono::nanoseconds(latency));
    }
    std::cout << offload::metrics::hdr_log_line(tag, start, length, histogram);
  }
}

void read_log() {
  offload::metrics::HdrLogReader reader(std::cin, "the log");
  offload::metrics::HdrLogInterval interval;
  while (reader.next(interval)) {
    std::cout << (interval.tag.empty() ? "-" : interval.tag) << ' ' << interval.start_s << ' '
              << interval.length_s;
    for (std::size_t i = 0; i < interval.histogram.end_bucket(); ++i) {
      const std::uint64_t count = interval.histogram.count_at(i);
      if (count != 0) std::cout << ' ' << i << ':' << count;
    }
    std::cout << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 2 ? argv[1] : "";
  try {
    if (mode == "write") {
      write_log();
    } else if (mode == "read") {
      read_log();
    } else {
      std::fputs("usage: hdr_log_tool write|read <INPUT >OUTPUT\n", stderr);
      return 2;
    }
    return std::cout.flush() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hdr_log_tool: %s\n", error.what());
    return 1;
  }
}
