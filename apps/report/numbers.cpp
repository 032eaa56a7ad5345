#include "apps/report/numbers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

namespace offload::report {
namespace {

/// Three digits, and no zeros behind the point that say nothing.
std::string three_digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (decimals != 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

}  // namespace

std::string grouped(double value, int decimals) {
  const std::string digits = fmt::format("{:.{}f}", std::abs(value), decimals);
  const std::size_t end = std::min(digits.find('.'), digits.size());
  std::string text = value < 0 ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && i < end && (end - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string grouped(double value) {
  const double size = std::abs(value);
  return grouped(value, size >= 1000 || size == 0 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

std::string counted(std::uint64_t count) {
  return grouped(static_cast<double>(count), 0);
}

std::string time_text(double us) {
  if (us == 0) return "0";
  if (us < 0.9995) return three_digits(us * 1e3) + " ns";
  if (us < 999.5) return three_digits(us) + " µs";
  if (us < 999.5e3) return three_digits(us / 1e3) + " ms";
  return three_digits(us / 1e6) + " s";
}

std::string short_text(double value) {
  if (value < 999.5) return three_digits(value);
  if (value < 999.5e3) return three_digits(value / 1e3) + "k";
  if (value < 999.5e6) return three_digits(value / 1e6) + "M";
  return three_digits(value / 1e9) + "G";
}

std::vector<double> linear_ticks(double low, double high, int most) {
  const double rough = (high - low) / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9) + 0.0;  // no -0
  for (double at = first; at * step <= high + 1e-9 * step && ticks.size() < 100; ++at) {
    ticks.push_back(at * step);
  }
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  const bool few = std::log10(high / low) < 3;
  std::vector<double> ticks;
  const int last = static_cast<int>(std::floor(std::log10(high)));
  for (int exponent = static_cast<int>(std::floor(std::log10(low))); exponent <= last; ++exponent) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10, exponent);
      const bool inside = tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9);
      if (inside && (few || factor == 1.0)) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::pair<double, double> rounded_range(double low, double high) {
  const auto step_above = [](double value) {
    const double power = std::pow(10, std::floor(std::log10(value)));
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= value * (1 - 1e-9)) return factor * power;
    }
    return 10 * power;
  };
  const double top = step_above(high);
  const double bottom = 1 / step_above(1 / low);  // of 1, 2 and 5 the inverses are such again
  return {bottom, std::max(top, 2 * bottom)};
}

std::string utc_text(double unix_s) {
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm fields{};
  ::gmtime_r(&seconds, &fields);
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%F %T UTC", &fields);
  return {text.data(), size};
}

}  // namespace offload::report
