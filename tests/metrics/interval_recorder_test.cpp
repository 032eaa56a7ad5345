#include "metrics/interval_recorder.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "metrics/latency_histogram.hpp"

namespace offload::metrics {
namespace {

/// The numbers from `first` on, `count` of them.
struct Numbers {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  LatencyHistogram histogram;

  void record(std::uint64_t number) noexcept {
    if (count == 0) first = number;
    ++count;
    histogram.record(std::chrono::nanoseconds(static_cast<std::int64_t>(number)));
  }
  void clear() noexcept {
    first = 0;
    count = 0;
    histogram.clear();
  }
};
using Recorder = IntervalRecorder<Numbers>;

TEST(IntervalRecorder, AnOfferedIntervalIsTakenOnce) {
  Recorder recorder;
  const auto never = [](Numbers&) { FAIL() << "nothing was offered"; };
  EXPECT_FALSE(recorder.take(never));
  recorder.active().record(7);
  EXPECT_TRUE(recorder.offer());
  EXPECT_EQ(recorder.active().count, 0U) << "the spare one is active";
  std::uint64_t taken = 0;
  EXPECT_TRUE(recorder.take([&](const Numbers& numbers) { taken = numbers.first; }));
  EXPECT_EQ(taken, 7U);
  EXPECT_FALSE(recorder.take(never));
}

TEST(IntervalRecorder, ItGoesOnInTheSameIntervalUntilTheLastIsTaken) {
  Recorder recorder;
  recorder.active().record(1);
  ASSERT_TRUE(recorder.offer());
  recorder.active().record(2);
  EXPECT_FALSE(recorder.offer());
  recorder.active().record(3);
  ASSERT_TRUE(recorder.take([](const Numbers& numbers) { EXPECT_EQ(numbers.count, 1U); }));
  EXPECT_TRUE(recorder.offer());
  EXPECT_EQ(recorder.active().count, 0U) << "it was cleared";
  ASSERT_TRUE(recorder.take([](const Numbers& numbers) {
    EXPECT_EQ(numbers.first, 2U);
    EXPECT_EQ(numbers.count, 2U);
    EXPECT_EQ(numbers.histogram.count(), 2U);
  }));
}

TEST(IntervalRecorder, AnIntervalIsKeptIfItsUseFails) {
  Recorder recorder;
  recorder.active().record(1);
  ASSERT_TRUE(recorder.offer());
  EXPECT_THROW(recorder.take([](Numbers&) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_TRUE(recorder.take([](const Numbers& numbers) { EXPECT_EQ(numbers.count, 1U); }));
}

TEST(IntervalRecorder, TheRestIsTakenInOrder) {
  Recorder recorder;
  recorder.active().record(1);
  ASSERT_TRUE(recorder.offer());
  recorder.active().record(2);
  std::vector<std::uint64_t> firsts;
  const auto note = [&](const Numbers& numbers) { firsts.push_back(numbers.first); };
  recorder.take_rest(note);
  EXPECT_EQ(firsts, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(recorder.active().count, 0U);
}

TEST(IntervalRecorder, TwoThreadsLoseAndDoubleNothing) {
  constexpr std::uint64_t kNumbers = 300'000;
  Recorder recorder;
  LatencyHistogram all;
  std::uint64_t next = 0;
  std::uint64_t intervals = 0;
  const auto check = [&](const Numbers& numbers) {
    if (numbers.count == 0) return;
    ++intervals;
    ASSERT_EQ(numbers.first, next);
    ASSERT_EQ(numbers.histogram.count(), numbers.count);
    next += numbers.count;
    all.merge(numbers.histogram);
  };
  std::atomic<bool> ended{false};
  std::thread writer([&] {
    for (std::uint64_t number = 0; number < kNumbers; ++number) {
      recorder.active().record(number);
      if (number % 64 == 0) recorder.offer();
    }
    ended.store(true, std::memory_order_release);  // pairs with the acquire below
  });
  while (!ended.load(std::memory_order_acquire)) {
    if (!recorder.take(check)) std::this_thread::yield();
  }
  writer.join();
  recorder.take_rest(check);
  EXPECT_EQ(next, kNumbers);
  EXPECT_EQ(all.count(), kNumbers);
  EXPECT_GE(intervals, 1U);
  LatencyHistogram expected;
  for (std::uint64_t number = 0; number < kNumbers; ++number) {
    expected.record(std::chrono::nanoseconds(static_cast<std::int64_t>(number)));
  }
  for (std::size_t i = 0; i < expected.end_bucket(); ++i) {
    ASSERT_EQ(all.count_at(i), expected.count_at(i)) << i;
  }
}

}  // namespace
}  // namespace offload::metrics
