#include <gtest/gtest.h>

#include "apps/client/load_run.hpp"

namespace offload::client {
namespace {

using namespace std::chrono_literals;

TEST(Statistics, SumsThreadsAndLastsToTheLastResponse) {
  const core::TimePoint start = core::TimePoint{} + 1h;
  LoadResult one;
  one.sent = one.answered = one.valid = 2;
  one.tx_bytes = one.rx_bytes = std::uint64_t{2} << 30;
  one.last_response = start + 2s;
  one.latency.record(100us);
  one.latency.record(200us);
  LoadResult other;
  other.sent = 2;
  other.answered = other.valid = 1;
  other.tx_bytes = std::uint64_t{2} << 30;
  other.rx_bytes = std::uint64_t{1} << 30;
  other.last_response = start + 1s;
  other.latency.record(1ms);
  Statistics statistics;
  statistics.add(one, start);
  statistics.add(other, start);
  EXPECT_EQ(statistics.duration, 2s);
  EXPECT_EQ(statistics.operations, 3U);
  EXPECT_EQ(statistics.valid, 3U);
  EXPECT_EQ(statistics.unanswered, 1U);
  EXPECT_DOUBLE_EQ(statistics.tx_gib_per_second(), 2.0);
  EXPECT_DOUBLE_EQ(statistics.rx_gib_per_second(), 1.5);
  EXPECT_DOUBLE_EQ(statistics.million_operations_per_second(), 1.5e-6);
  EXPECT_EQ(statistics.latency.count(), 3U);
  EXPECT_EQ(statistics.latency.min(), 100us);
  EXPECT_EQ(statistics.latency.max(), 1ms);
}

TEST(Statistics, NothingAnsweredIsNoRate) {
  Statistics statistics;
  LoadResult silent;
  silent.sent = 5;
  silent.tx_bytes = 85;
  statistics.add(silent, core::TimePoint{} + 1h);
  EXPECT_EQ(statistics.duration, 0s);
  EXPECT_EQ(statistics.unanswered, 5U);
  EXPECT_EQ(statistics.tx_gib_per_second(), 0);
}

TEST(Statistics, AWrongResponseIsAnOperationThatIsNotValid) {
  Statistics statistics;
  LoadResult result;
  result.sent = 3;
  result.answered = 2;
  result.valid = 1;
  statistics.add(result, core::TimePoint{});
  EXPECT_EQ(statistics.operations, 2U);
  EXPECT_EQ(statistics.valid, 1U);
  EXPECT_EQ(statistics.unanswered, 1U);
}

}  // namespace
}  // namespace offload::client
