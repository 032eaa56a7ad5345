#include "apps/worker/packets/metrics.hpp"

#include <gtest/gtest.h>

#include <string>

namespace offload::worker {
namespace {

using kernels::packets::DatagramCounts;
using kernels::packets::kMartians;

/// Counts of which no two are equal.
DatagramCounts different_counts() {
  DatagramCounts counts{};
  counts.datagrams = 1000;
  counts.answered = 400;
  counts.refused = 30;
  counts.malformed = 29;
  counts.bad_frames = 8;
  counts.received_bytes = 70'000;
  counts.sent_bytes = 60'000;
  counts.busy_ns = 2'500'000'000;
  counts.poll_ns = 7'000'000'000;
  for (std::uint32_t i = 0; i < kMartians; ++i) counts.martians[i] = 100 + i;
  return counts;
}

TEST(DatagramMetrics, OfAQueueAreItsCounts) {
  telemetry::Exposition page(true);
  collect_queue(page, page.shard("queue", 3), read_counts(different_counts()));
  const std::string text = "\n" + page.text();
  for (const char* const line : {
           "datagrams_total{queue=\"3\"} 1000",
           "answers_total{queue=\"3\",result=\"ok\"} 400",
           "answers_total{queue=\"3\",result=\"worker_failed\"} 30",
           "dropped_total{queue=\"3\",reason=\"frame\"} 8",
           "dropped_total{queue=\"3\",reason=\"request\"} 21",
           "dropped_total{queue=\"3\",reason=\"ethernet\"} 101",
           "dropped_total{queue=\"3\",reason=\"vlan\"} 102",
           "dropped_total{queue=\"3\",reason=\"destination\"} 103",
           "dropped_total{queue=\"3\",reason=\"source\"} 104",
           "dropped_total{queue=\"3\",reason=\"source_port\"} 105",
           "receive_bytes_total{queue=\"3\"} 70000",
           "transmit_bytes_total{queue=\"3\"} 60000",
           "busy_seconds_total{queue=\"3\"} 2.5",
           "poll_seconds_total{queue=\"3\"} 7",
       }) {
    EXPECT_NE(text.find("\noffload_udp_" + std::string(line) + "\n"), std::string::npos)
        << line << " is not in" << text;
  }
  EXPECT_EQ(text.find("none"), std::string::npos);
}

TEST(DatagramMetrics, NoDifferenceIsBelowZero) {
  DatagramCounts counts = different_counts();
  counts.malformed = 7;  // read while both are written
  const DatagramCounts read = read_counts(counts);
  EXPECT_EQ(read.malformed, 8U);
  EXPECT_EQ(read.bad_frames, 8U);
  EXPECT_EQ(read.martians[kMartians - 1], 106U);
}

TEST(DatagramMetrics, AreReadyFromTheFirstFiguresUntilTheEnd) {
  DatagramMetrics metrics("cpu", "echo");
  EXPECT_FALSE(metrics.readiness().holds);
  EXPECT_EQ(metrics.readiness().why, "0 queues are processed");
  telemetry::Exposition before(false);
  metrics.collect(before);
  EXPECT_NE(before.text().find("\noffload_udp_ready 0\n"), std::string::npos) << before.text();
  EXPECT_TRUE(metrics.health().holds);
  metrics.leave();
  EXPECT_FALSE(metrics.readiness().holds);
  EXPECT_EQ(metrics.readiness().why, "the worker is shutting down");
}

}  // namespace
}  // namespace offload::worker
