#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Numbers as people read them.
namespace offload::report {

/// With four significant digits at least, and thousands apart: "0.8312", "83.12", "812,345".
std::string grouped(double value);
/// Formats a number with exactly `decimals` digits after the point: "1,234.5".
std::string grouped(double value, int decimals);
/// "1,234"
std::string counted(std::uint64_t count);

/// Formats a time in microseconds with three digits and its unit: "830 ns", "83.1 µs", "1.02 ms".
std::string time_text(double us);
/// A number with k, M or G, with three digits: "812k", "1.02M".
std::string short_text(double value);

/// Round values for an axis, `most` at most, that lie between two bounds: steps of 1, 2 or 5 times
/// a power of ten. `low` < `high`, both finite.
std::vector<double> linear_ticks(double low, double high, int most);
/// The same for a logarithmic axis, 0 < `low` < `high`: powers of ten, and 2 and 5 times such
/// where there are few.
std::vector<double> log_ticks(double low, double high);

/// The bounds rounded to 1, 2 or 5 times a power of ten, the lower one down, the upper one up.
std::pair<double, double> rounded_range(double low, double high);

/// 2026-01-31 12:00:00 UTC; `unix_s` from 0 to the year 9999.
std::string utc_text(double unix_s);

}  // namespace offload::report
