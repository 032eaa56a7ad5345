#include "metrics/hdr_log.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <utility>

#include "core/error.hpp"
#include "core/units.hpp"
#include "metrics/hdr_codec.hpp"

namespace offload::metrics {
namespace {

constexpr std::size_t kMaxLine = kMaxHdrText + 4096;
constexpr std::size_t kMaxTag = 256;
constexpr double kNanosecondsPerMillisecond = 1e6;
constexpr double kYear = 365 * 24 * 3600.0;  // s

constexpr double kLatest = 253'402'300'799;  // the end of the year 9999, s since the epoch

/// "Wed Sep 09 08:24:39 UTC 2015", as Java writes a date.
std::string date_of(double unix_s) {
  if (!(unix_s >= 0 && unix_s <= kLatest)) return "unknown";
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm parts{};
  std::array<char, 64> text{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "unknown";
  const std::size_t size =
      std::strftime(text.data(), text.size(), "%a %b %d %H:%M:%S UTC %Y", &parts);
  return {text.data(), size};
}

std::optional<double> number_in(std::string_view text) {
  const auto value = core::parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// Takes what is before `separator` off the front; all of it if there is none.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t size = text.find(separator);
  const std::string_view taken = text.substr(0, size);
  text = size == std::string_view::npos ? std::string_view() : text.substr(size + 1);
  return taken;
}

bool is_tag(std::string_view tag) noexcept {
  const auto is_allowed = [](char each) { return each > ' ' && each < 0x7f && each != ','; };
  return tag.size() <= kMaxTag && std::all_of(tag.begin(), tag.end(), is_allowed);
}

/// The number in a comment such as "#[StartTime: 1441812279.474 (seconds since epoch), ...]".
std::optional<std::string_view> value_of(std::string_view comment, std::string_view name) {
  if (!comment.starts_with(name)) return {};
  comment.remove_prefix(name.size());
  comment.remove_prefix(std::min(comment.find_first_not_of(' '), comment.size()));
  return take_until(comment, ' ');
}

}  // namespace

std::string hdr_log_header(double start_unix_s) {
  return fmt::format(
      "#[Histogram log format version 1.3]\n"
      "#[StartTime: {0:.3f} (seconds since epoch), {1}]\n"
      "#[BaseTime: {0:.3f} (seconds since epoch)]\n"
      "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
      "\"Interval_Compressed_Histogram\"\n",
      start_unix_s, date_of(start_unix_s));
}

std::string hdr_log_line(std::string_view tag, double start_s, double length_s,
                         std::chrono::nanoseconds max, std::string_view encoded) {
  // The same as getMaxValue() of HdrHistogram.
  const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(max.count(), 0));
  const std::uint64_t highest = LatencyHistogram::highest_of(LatencyHistogram::bucket_of(value));
  return fmt::format("{}{}{}{:.3f},{:.3f},{:.3f},{}\n", tag.empty() ? "" : "Tag=", tag,
                     tag.empty() ? "" : ",", start_s, length_s,
                     static_cast<double>(highest) / kNanosecondsPerMillisecond, encoded);
}

std::string hdr_log_line(std::string_view tag, double start_s, double length_s,
                         const LatencyHistogram& histogram) {
  return hdr_log_line(tag, start_s, length_s, histogram.max(), encode_hdr(histogram));
}

HdrLogReader::HdrLogReader(std::istream& log, std::string name)
    : log_(log), name_(std::move(name)), buffer_(kMaxLine + 1) {}

bool HdrLogReader::next(HdrLogInterval& interval) {
  while (read_line()) {
    if (line_.empty() || line_.front() == '"') continue;  // the legend is quoted
    if (line_.front() == '#') {
      read_comment(line_);
      continue;
    }
    read_interval(line_, interval);
    return true;
  }
  return false;
}

bool HdrLogReader::read_line() {
  if (log_.eof()) return false;
  if (!log_.good()) {
    throw core::Error(core::ErrorCode::io_failed, fmt::format("{}: cannot be read", name_));
  }
  ++number_;
  log_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  if (log_.bad()) {
    throw core::Error(core::ErrorCode::io_failed, fmt::format("{}: cannot be read", name_));
  }
  auto size = static_cast<std::size_t>(log_.gcount());
  if (log_.fail() && !log_.eof()) throw_bad("the line is too long");
  if (!log_.eof()) --size;  // the end of the line was taken, and is not in the buffer
  if (log_.eof() && size == 0) return false;
  line_ = {buffer_.data(), size};
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  return true;
}

void HdrLogReader::read_comment(std::string_view comment) {
  for (const auto& [name, time] :
       {std::pair("#[StartTime:", &start_unix_s_), std::pair("#[BaseTime:", &base_unix_s_)}) {
    const auto value = value_of(comment, name);
    if (!value) continue;
    const auto seconds = number_in(*value);
    if (!seconds) throw_bad("the time is not a number of seconds");
    *time = *seconds;
  }
}

double HdrLogReader::base_of(double first_start) {
  if (!base_unix_s_) {
    // Without a base time, HdrHistogram's reader takes stamps of more than a year before the start
    // of the log as relative to it.
    const double start = start_unix_s_.value_or(first_start);
    base_unix_s_ = first_start < start - kYear ? start : 0;
  }
  return *base_unix_s_;
}

void HdrLogReader::read_interval(std::string_view line, HdrLogInterval& interval) {
  constexpr std::string_view kTag = "Tag=";
  std::string_view tag;
  if (line.starts_with(kTag)) {
    tag = take_until(line, ',').substr(kTag.size());
    if (tag.empty() || !is_tag(tag)) throw_bad("the tag is empty, too long or not plain text");
  }
  const auto start = number_in(take_until(line, ','));
  const auto length = number_in(take_until(line, ','));
  const auto max = number_in(take_until(line, ','));
  if (!start || !length || !max) throw_bad("it is no comment or interval with three numbers");
  if (*start < 0 || *length < 0 || *max < 0) throw_bad("a number is negative");
  try {
    interval.histogram = decode_hdr(line);
  } catch (const core::Error& error) {
    if (error.code() != core::ErrorCode::bad_message) throw;
    throw_bad(error.what());
  }
  interval.tag = tag;
  interval.start_s = base_of(*start) + *start;
  interval.length_s = *length;
}

void HdrLogReader::throw_bad(const std::string& what) const {
  throw core::Error(core::ErrorCode::bad_message,
                    fmt::format("{}, line {}: {}", name_, number_, what));
}

}  // namespace offload::metrics
