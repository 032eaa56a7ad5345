#include "apps/client/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace offload::client {
namespace {

using namespace std::chrono_literals;

/// 2 s, 4 requests of 1 GiB each way, 3 answered rightly, 1 not at all.
Statistics sample() {
  const core::TimePoint start = core::TimePoint{} + 1h;
  LoadResult one;
  one.sent = 2;
  one.answered = one.valid = 2;
  one.tx_bytes = one.rx_bytes = std::uint64_t{2} << 30;
  one.last_response = start + 1s;
  one.latency.record(100us);
  one.latency.record(200us);
  LoadResult other;
  other.sent = 2;
  other.answered = other.valid = 1;
  other.tx_bytes = std::uint64_t{2} << 30;
  other.rx_bytes = std::uint64_t{1} << 30;
  other.last_response = start + 2s;
  other.latency.record(1ms);
  Statistics statistics;
  statistics.add(one, start);
  statistics.add(other, start);
  return statistics;
}

TEST(Report, TableUsesTheReferencesWords) {
  const auto table = make_table(sample());
  EXPECT_NE(table.find("Duration (seconds):       2.000000\n"), std::string::npos) << table;
  EXPECT_NE(table.find("Operation count:          3\n"), std::string::npos) << table;
  EXPECT_NE(table.find("Tx Data rate (GiB/s):     2.000000\n"), std::string::npos) << table;
  EXPECT_NE(table.find("Rx Data rate (GiB/s):     1.500000\n"), std::string::npos) << table;
  EXPECT_NE(table.find("IO rate (MIOP/s):         0.000002\n"), std::string::npos) << table;
  EXPECT_NE(table.find("Valid responses:          3\n"), std::string::npos) << table;
  EXPECT_NE(table.find("Unanswered requests:      1\n"), std::string::npos) << table;
  EXPECT_NE(table.find("Latency min (us):         100.000\n"), std::string::npos) << table;
  EXPECT_NE(table.find("Latency max (us):         1000.000\n"), std::string::npos) << table;
}

TEST(Report, JsonHasWhatIsDocumented) {
  Options options;
  options.server_address = "::1";
  options.size = 64;
  RunOutcome outcome;
  outcome.statistics = sample();
  const auto json = make_json(options, outcome);
  EXPECT_EQ(json.at("program"), "offload-client");
  EXPECT_EQ(json.at("status"), "ok");
  EXPECT_EQ(json.at("options").at("message_length"), 64);
  EXPECT_EQ(json.at("options").at("iteration_count"), 10'000);
  EXPECT_TRUE(json.at("options").at("duration_seconds").is_null());
  EXPECT_EQ(json.at("options").at("random_payload"), true);
  EXPECT_EQ(json.at("options").at("service"), "reverse");
  EXPECT_EQ(json.at("operation_count"), 3);
  EXPECT_EQ(json.at("valid_responses"), 3);
  EXPECT_EQ(json.at("unanswered_requests"), 1);
  EXPECT_DOUBLE_EQ(json.at("duration_seconds"), 2.0);
  EXPECT_DOUBLE_EQ(json.at("rx_data_rate_gib_s"), 1.5);
  EXPECT_DOUBLE_EQ(json.at("latency_us").at("min"), 100.0);
  EXPECT_NEAR(json.at("latency_us").at("p50").get<double>(), 200.0, 2.0);
  EXPECT_DOUBLE_EQ(json.at("latency_us").at("max"), 1000.0);
}

TEST(Report, JsonStatus) {
  RunOutcome outcome;
  outcome.interrupted = true;
  Options options;
  options.duration = 2s;
  EXPECT_EQ(make_json(options, outcome).at("status"), "interrupted");
  EXPECT_TRUE(make_json(options, outcome).at("options").at("iteration_count").is_null());
  outcome.faults.emplace_back("thread 0: ...");
  EXPECT_EQ(make_json(options, outcome).at("status"), "failed");
}

}  // namespace
}  // namespace offload::client
