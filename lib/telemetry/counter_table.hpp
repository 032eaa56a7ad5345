#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/counter.hpp"
#include "telemetry/exposition.hpp"

namespace offload::telemetry {

/// How a counter is shown, and how those of several owners become one.
enum class CounterKind : std::uint8_t {
  count,            ///< a counter: the sum
  gauge,            ///< a value that may fall: the sum
  seconds,          ///< nanoseconds, shown as a counter of seconds: the sum
  longest_seconds,  ///< nanoseconds, shown as a gauge of seconds: the largest
};

/// A counter of `Owner`, as /metrics and /status name it.
template <class Owner>
struct NamedCounter {
  const char* name;  ///< of the metric, in base units
  const char* help;
  CounterKind kind;
  const char*
      member;  ///< of an object in /status, without a unit or in nanoseconds; null: not there
  core::Counter Owner::*counter;
};

/// Adds the counters of `table` to `page`.
template <class Owner, std::size_t N>
void collect(Exposition& page, const Labels& labels,
             const std::array<NamedCounter<Owner>, N>& table, const Owner& owner) {
  for (const NamedCounter<Owner>& each : table) {
    const Metric metric{each.name, each.help};
    const std::uint64_t value = (owner.*each.counter).value();
    switch (each.kind) {
      case CounterKind::count: page.counter(metric, labels, static_cast<double>(value)); break;
      case CounterKind::gauge: page.gauge(metric, labels, static_cast<double>(value)); break;
      case CounterKind::seconds: page.counter_of_seconds(metric, labels, value); break;
      case CounterKind::longest_seconds:
        page.gauge_of_most(metric, labels, static_cast<double>(value) / 1e9);
        break;
    }
  }
}

/// Adds the counters of `table` to the members of `object`, which become those of all owners.
template <class Owner, std::size_t N>
void collect(nlohmann::json& object, const std::array<NamedCounter<Owner>, N>& table,
             const Owner& owner) {
  for (const NamedCounter<Owner>& each : table) {
    if (each.member == nullptr) continue;
    const std::uint64_t value = (owner.*each.counter).value();
    nlohmann::json& member = object[each.member];
    const auto before = member.is_null() ? 0 : member.get<std::uint64_t>();
    member = each.kind == CounterKind::longest_seconds ? std::max(before, value) : before + value;
  }
}

}  // namespace offload::telemetry
