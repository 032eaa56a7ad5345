#include "apps/client/run/run_result.hpp"

#include <gtest/gtest.h>

namespace offload::client {
namespace {

using namespace std::chrono_literals;

TEST(RunResult, RatesAreThoseOfItsDuration) {
  RunResult result;
  result.duration = 2s;
  result.total->sent = 4;
  result.total->answered = 3;
  result.total->tx_bytes = (std::uint64_t{4} << 30) + 4 * 12;
  result.total->rx_bytes = (std::uint64_t{3} << 30) + 3 * 12;
  EXPECT_DOUBLE_EQ(result.tx_gib_per_second(), 2.0);
  EXPECT_DOUBLE_EQ(result.rx_gib_per_second(), 1.5);
  EXPECT_DOUBLE_EQ(result.million_operations_per_second(), 1.5e-6);
  result.total->valid = 3;
  result.total->answered_after_end = result.total->valid_after_end = 1;
  result.total->rx_bytes_after_end = (std::uint64_t{1} << 30) + 12;
  EXPECT_DOUBLE_EQ(result.million_operations_per_second(), 1e-6);
  EXPECT_DOUBLE_EQ(result.valid_per_second(), 1);
  EXPECT_DOUBLE_EQ(result.rx_gib_per_second(), 1);
  EXPECT_DOUBLE_EQ(result.rx_wire_gib_per_second(), 1 + 12 / kGiB);
}

TEST(RunResult, ADataRateIsOfPayloadsAndAWireRateOfFrames) {
  RunResult result;
  result.duration = 1s;
  result.total->sent = result.total->answered = 1000;  // "hello" and "olleh"
  result.total->tx_bytes = result.total->rx_bytes = 17'000;
  EXPECT_DOUBLE_EQ(result.tx_gib_per_second(), 5000 / kGiB);
  EXPECT_DOUBLE_EQ(result.rx_gib_per_second(), 5000 / kGiB);
  EXPECT_DOUBLE_EQ(result.tx_wire_gib_per_second(), 17'000 / kGiB);
  EXPECT_DOUBLE_EQ(result.rx_wire_gib_per_second(), 17'000 / kGiB);
  result.total->rx_error_bytes = 4000;  // the text of an error frame is no payload
  EXPECT_DOUBLE_EQ(result.rx_gib_per_second(), 1000 / kGiB);
  result.total->rx_error_bytes = 6000;
  EXPECT_EQ(result.rx_gib_per_second(), 0);
}

TEST(RunResult, DatagramsHaveANumberInFrontOfTheirFrame) {
  RunResult result;
  result.udp = true;
  result.duration = 1s;
  result.total->sent = 10;
  result.total->sent_again = 2;
  result.total->answered = 8;
  result.total->duplicates = 2;
  result.total->late_answers = 2;
  result.total->tx_bytes = result.total->rx_bytes = 12 * 25;
  EXPECT_DOUBLE_EQ(result.tx_gib_per_second(), 60 / kGiB);
  EXPECT_DOUBLE_EQ(result.rx_gib_per_second(), 60 / kGiB);
}

TEST(RunResult, AFrameThatWasSentInPartHasNoNegativeRate) {
  RunResult result;
  result.duration = 1s;
  result.total->sent = result.total->answered = 1;
  result.total->tx_bytes = result.total->rx_bytes = 7;
  EXPECT_EQ(result.tx_gib_per_second(), 0);
  EXPECT_EQ(result.rx_gib_per_second(), 0);
}

TEST(RunResult, NothingAnsweredIsNoRate) {
  RunResult result;
  result.total->tx_bytes = 85;
  EXPECT_EQ(result.tx_gib_per_second(), 0);
  EXPECT_EQ(result.mean_in_flight(), 0);
  EXPECT_EQ(result.in_flight_by_littles_law(), 0);
}

TEST(RunResult, LittlesLaw) {
  RunResult result;
  result.total->begin = core::TimePoint{} + 1h;
  result.total->end = result.total->begin + 2s;
  for (int i = 0; i < 1000; ++i) result.total->service.record(4ms);
  result.total->in_flight_ns = 1000 * 4e6;
  EXPECT_DOUBLE_EQ(result.mean_in_flight(), 2);
  EXPECT_NEAR(result.in_flight_by_littles_law(), 2, 0.01);
}

TEST(RunResult, WhatHadNoTimeToBeAnsweredIsNotUnfinished) {
  RunResult result;
  result.total->unfinished = 4;  // one of them has no response at all
  for (const auto age : {1ms, 49ms, 500ms}) result.total->unfinished_age.record(age);
  EXPECT_EQ(result.unfinished(), 2U);
  // A server without a queue that usually takes as long has not even begun to be late.
  for (int i = 0; i < 10; ++i) result.total->service.record(300ms);
  EXPECT_EQ(result.unfinished(), 1U);
}

TEST(RunResult, AnAnswerToTheWarmUpIsNoRequestLess) {
  RunResult result;
  result.total->unfinished_age.record(1ms);
  EXPECT_EQ(result.unfinished(), 0U);
}

TEST(RunResult, ErrorsAreKnownByCountOrFault) {
  RunResult result;
  EXPECT_FALSE(result.has_errors());
  result.total->errors.add(ErrorKind::late);
  EXPECT_TRUE(result.has_errors());
  RunResult other;
  other.faults.emplace_back("thread 0: ...");
  EXPECT_TRUE(other.has_errors());
}

TEST(RunResult, TheVerdictIsOnItsFigures) {
  RunResult result;
  result.duration = 2s;
  result.busy = 0.75;
  result.total->valid = 30;
  result.total->valid_after_end = 10;
  result.total->due = 41;
  result.total->noticed_late = 42;
  result.total->held_back = 43;
  result.total->never_sent = 44;
  result.total->unfinished = 45;
  result.total->service.record(1us);
  result.total->lag.record(8us);
  const LoadSeen seen = result.load_seen(12.5, 3us);
  EXPECT_EQ(seen.offered, 12.5);
  EXPECT_EQ(seen.achieved, 10);
  EXPECT_EQ(seen.timed, 1U);
  EXPECT_EQ(seen.due, 41U);
  EXPECT_EQ(seen.noticed_late, 42U);
  EXPECT_EQ(seen.held_back, 43U);
  EXPECT_EQ(seen.never_sent, 44U);
  EXPECT_EQ(seen.unfinished, 45U);
  EXPECT_EQ(seen.lag_p99, 8us);
  EXPECT_EQ(seen.tolerance, 3us);
  EXPECT_EQ(seen.busy, 0.75);
}

TEST(RunResult, APercentileHasALatencyBeyondIt) {
  metrics::LatencyHistogram histogram;
  for (int i = 0; i < 9; ++i) histogram.record(1ms);
  EXPECT_FALSE(has_percentile(histogram, 0.9));
  histogram.record(1ms);
  EXPECT_TRUE(has_percentile(histogram, 0.9));
}

}  // namespace
}  // namespace offload::client
