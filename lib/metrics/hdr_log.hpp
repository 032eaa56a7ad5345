#pragma once

#include <chrono>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/latency_histogram.hpp"

namespace offload::metrics {

/// @file
/// HdrHistogram's log of intervals, format version 1.3: comment lines, a legend, and a line for
/// each interval, "Tag=service_time,1.000,1.000,0.431,HISTFAAAA...": start and length in seconds,
/// the largest value in milliseconds, the histogram.

/// The first lines of a log whose intervals begin after `start_unix_s`, in seconds since the epoch.
std::string hdr_log_header(double start_unix_s);

/// The line of one interval. `tag`: of letters, digits, '_', '-' and '.'; empty for none.
/// `start_s`: since the start of the log. The second one is for a caller that has only the largest
/// latency and encode_hdr(histogram) left.
std::string hdr_log_line(std::string_view tag, double start_s, double length_s,
                         const LatencyHistogram& histogram);
std::string hdr_log_line(std::string_view tag, double start_s, double length_s,
                         std::chrono::nanoseconds max, std::string_view encoded);

/// An interval of a log.
struct HdrLogInterval {
  std::string tag;  ///< empty without one
  /// In seconds since the epoch; if the log names no start, as it is in the line.
  double start_s = 0;
  double length_s = 0;
  LatencyHistogram histogram;
};

/// Reads a log, an interval at a time. A log is untrusted: each line is checked, and a longer one
/// than a histogram can have is not read to its end. One thread.
class HdrLogReader {
 public:
  /// `name`: of the log, for errors. `log` must outlive the reader.
  HdrLogReader(std::istream& log, std::string name);

  /// Reads the next interval; false at the end of the log. Throws core::Error with name and line
  /// number: bad_message for a line that is no comment, legend or interval, and io_failed if the
  /// log cannot be read.
  bool next(HdrLogInterval& interval);

 private:
  bool read_line();
  void read_comment(std::string_view comment);
  void read_interval(std::string_view line, HdrLogInterval& interval);
  double base_of(double first_start);
  [[noreturn]] void throw_bad(const std::string& what) const;

  std::istream& log_;
  const std::string name_;
  std::vector<char> buffer_;
  std::string_view line_;  ///< in buffer_
  std::uint64_t number_ = 0;
  std::optional<double> start_unix_s_;
  std::optional<double> base_unix_s_;  ///< what is added to the start of an interval
};

}  // namespace offload::metrics
