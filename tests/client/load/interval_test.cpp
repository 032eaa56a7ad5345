#include "apps/client/load/interval.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace offload::client {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t IntervalCounts::*kCounts[] = {
    &IntervalCounts::sent,
    &IntervalCounts::answered,
    &IntervalCounts::valid,
    &IntervalCounts::tx_bytes,
    &IntervalCounts::rx_bytes,
    &IntervalCounts::rx_error_bytes,
    &IntervalCounts::answered_after_end,
    &IntervalCounts::valid_after_end,
    &IntervalCounts::rx_bytes_after_end,
    &IntervalCounts::lost,
    &IntervalCounts::duplicates,
    &IntervalCounts::late_answers,
    &IntervalCounts::sent_again,
    &IntervalCounts::due,
    &IntervalCounts::noticed_late,
    &IntervalCounts::held_back,
    &IntervalCounts::never_sent,
    &IntervalCounts::unfinished,
};
constexpr metrics::LatencyHistogram Interval::*kHistograms[] = {
    &Interval::service, &Interval::response, &Interval::lag, &Interval::connect,
    &Interval::unfinished_age};

core::TimePoint at(core::Duration time) {
  return core::TimePoint{} + time;
}

/// Each figure has another value, from `first` on.
std::unique_ptr<Interval> interval_of(std::uint64_t first) {
  auto interval = std::make_unique<Interval>();
  for (const auto count : kCounts) (*interval).*count = first++;
  interval->errors.add(ErrorKind::late, first++);
  interval->in_flight_ns = static_cast<double>(first++);
  for (const auto histogram : kHistograms) {
    for (std::uint64_t i = 0; i <= first % 5; ++i) ((*interval).*histogram).record(1us);
    ++first;
  }
  return interval;
}

TEST(Interval, AMergedOneHasTheSums) {
  const auto one = interval_of(100);
  const auto other = interval_of(1000);
  const auto sum = interval_of(100);
  sum->merge(*other);
  for (const auto count : kCounts) EXPECT_EQ((*sum).*count, (*one).*count + (*other).*count);
  EXPECT_EQ(sum->errors.of(ErrorKind::late),
            one->errors.of(ErrorKind::late) + other->errors.of(ErrorKind::late));
  EXPECT_EQ(sum->in_flight_ns, one->in_flight_ns + other->in_flight_ns);
  for (const auto histogram : kHistograms) {
    EXPECT_EQ(((*sum).*histogram).count(),
              ((*one).*histogram).count() + ((*other).*histogram).count());
  }
}

TEST(Interval, AMergedOneSpansBothTimes) {
  const auto merged = [](std::pair<int, int> one, std::pair<int, int> other) {
    const auto to = std::make_unique<Interval>();
    const auto from = std::make_unique<Interval>();
    for (const auto& [interval, times] : {std::pair{to.get(), one}, std::pair{from.get(), other}}) {
      interval->begin = at(std::chrono::seconds(times.first));
      interval->end = interval->last_answer = at(std::chrono::seconds(times.second));
    }
    to->merge(*from);
    EXPECT_EQ(to->last_answer, to->end);
    return std::pair{to->begin, to->end};
  };
  EXPECT_EQ(merged({3, 5}, {4, 9}), std::pair(at(3s), at(9s)));
  EXPECT_EQ(merged({4, 9}, {3, 5}), std::pair(at(3s), at(9s)));
  EXPECT_EQ(merged({0, 0}, {4, 9}), std::pair(at(4s), at(9s))) << "an empty one has no time";
  EXPECT_EQ(merged({4, 9}, {0, 0}), std::pair(at(4s), at(9s)));
}

TEST(Interval, AClearedOneIsAsNew) {
  const auto interval = interval_of(1);
  interval->begin = interval->end = interval->last_answer = at(1s);
  EXPECT_FALSE(interval->is_empty());
  interval->clear();
  EXPECT_TRUE(interval->is_empty());
  EXPECT_EQ(interval->begin, core::TimePoint{});
  EXPECT_EQ(interval->end, core::TimePoint{});
  EXPECT_EQ(interval->last_answer, core::TimePoint{});
  for (const auto count : kCounts) EXPECT_EQ((*interval).*count, 0U);
  EXPECT_EQ(interval->errors.total(), 0U);
  EXPECT_EQ(interval->in_flight_ns, 0);
  for (const auto histogram : kHistograms) EXPECT_EQ(((*interval).*histogram).count(), 0U);
}

TEST(Interval, OneFigureMakesItNotEmpty) {
  const auto is_empty_with = [](const auto& change) {
    const auto interval = std::make_unique<Interval>();
    change(*interval);
    return interval->is_empty();
  };
  EXPECT_TRUE(is_empty_with([](Interval&) {}));
  for (const auto count : {&IntervalCounts::sent, &IntervalCounts::answered, &IntervalCounts::due,
                           &IntervalCounts::never_sent, &IntervalCounts::unfinished}) {
    EXPECT_FALSE(is_empty_with([count](Interval& interval) { interval.*count = 1; }));
  }
  EXPECT_FALSE(is_empty_with([](Interval& interval) { interval.errors.add(ErrorKind::late); }));
  EXPECT_FALSE(is_empty_with([](Interval& interval) { interval.connect.record(1us); }));
  EXPECT_FALSE(is_empty_with([](Interval& interval) { interval.in_flight_ns = 1; }));
}

}  // namespace
}  // namespace offload::client
