#include "results/write_result.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/results/sample.hpp"

namespace offload::results {
namespace {

TEST(WriteResult, IsOfFormatOne) {
  const auto written = nlohmann::json::parse(result_text(sample_result({sample_run()})));
  EXPECT_EQ(written.at("program"), "offload-client");
  EXPECT_EQ(written.at("format"), 1);
  EXPECT_EQ(written.at("options").at("service"), "reverse");
  EXPECT_TRUE(written.at("options").at("iteration_count").is_null());
  EXPECT_TRUE(written.at("repeats").is_null());
  const auto& run = written.at("runs").at(0);
  EXPECT_TRUE(run.at("offered_per_second").is_null());
  EXPECT_TRUE(run.at("response_time_us").is_null());
  EXPECT_EQ(run.at("service_time_us").at("max"), 400);
  EXPECT_EQ(run.at("errors"), nlohmann::json::object());
}

TEST(WriteResult, HasFurtherMembersWhereThereAreValues) {
  results::Run run = sample_run();
  run.tx_wire_rate_gib_s = 0.75;
  run.datagrams = Counts{{"lost", 2}};
  run.requests = Counts{};
  const auto written = nlohmann::json::parse(result_text(sample_result({run, sample_run()})));
  const auto& first = written.at("runs").at(0);
  EXPECT_EQ(first.at("tx_wire_rate_gib_s"), 0.75);
  EXPECT_EQ(first.at("datagrams").at("lost"), 2);
  EXPECT_TRUE(first.at("requests").is_null());
  EXPECT_FALSE(first.contains("client_busy"));
  EXPECT_FALSE(written.at("runs").at(1).contains("datagrams"));
}

/// Returns the names of an object's members, in their order.
std::string names_in(const nlohmann::ordered_json& object) {
  std::string names;
  for (const auto& item : object.items()) names += item.key() + " ";
  return names;
}

TEST(WriteResult, HasTheMembersOfTheFormat) {
  results::Run run = run_of_kinds();
  run.schedule_lag_us = latency_of({1});
  run.tx_wire_rate_gib_s = run.rx_wire_rate_gib_s = run.client_busy = 0.25;
  run.datagrams = run.requests = Counts{{"lost", 2}};
  run.intervals[0].in_flight = 1.5;
  Result result = sample_result({run});
  result.repeats = {{"io_rate_miops", {1, 0.5, 1.5, 0.95}}};
  const auto written = nlohmann::ordered_json::parse(result_text(result));
  EXPECT_EQ(names_in(written),
            "program format version revision command_line machine options status faults runs "
            "repeats search ");
  EXPECT_EQ(names_in(written["machine"]), "host system processor processors ");
  EXPECT_EQ(names_in(written["repeats"]["io_rate_miops"]), "median low high confidence ");
  const auto& first = written["runs"][0];
  EXPECT_EQ(names_in(first),
            "started_at_unix_s offered_per_second arrivals connections max_concurrent_messages "
            "warmup_seconds duration_seconds operation_count valid_responses unanswered_requests "
            "tx_bytes rx_bytes tx_data_rate_gib_s rx_data_rate_gib_s tx_wire_rate_gib_s "
            "rx_wire_rate_gib_s io_rate_miops errors datagrams service_time_us response_time_us "
            "schedule_lag_us connect_time_us requests in_flight client_busy kinds verdict "
            "intervals ");
  EXPECT_EQ(names_in(first["in_flight"]), "mean by_littles_law ");
  EXPECT_EQ(names_in(first["verdict"]), "code text ");
  EXPECT_EQ(names_in(first["kinds"][1]),
            "name server_ip_port share connections offered_per_second valid_per_second "
            "operation_count valid_responses errors service_time_us response_time_us ");
  EXPECT_EQ(names_in(first["intervals"][0]),
            "start_s length_s operations valid errors in_flight service_time_us "
            "response_time_us ");
  EXPECT_EQ(names_in(first["intervals"][0]["service_time_us"]), "p50 p99 max histogram ");
}

TEST(WriteResult, AStatisticThatTooFewLatenciesHoldIsNull) {
  results::Run run = sample_run();
  run.connect_time_us = latency_of({});
  run.intervals.push_back(interval_of(2, 1, {}));
  const auto written = nlohmann::json::parse(result_text(sample_result({run})));
  const auto& of_run = written.at("runs").at(0);
  EXPECT_NEAR(of_run.at("service_time_us").at("p50").get<double>(), 200, 1);
  for (const char* const name : {"p90", "p95", "p99", "p99_9", "p99_99", "p99_999"}) {
    EXPECT_TRUE(of_run.at("service_time_us").at(name).is_null()) << name;
  }
  for (const char* const name : kStatisticNames) {
    EXPECT_TRUE(of_run.at("connect_time_us").at(name).is_null()) << name;
  }
  const auto& last = of_run.at("intervals").at(2).at("service_time_us");
  for (const char* const name : {"p50", "p99", "max"}) EXPECT_TRUE(last.at(name).is_null()) << name;
  EXPECT_TRUE(of_run.at("intervals").at(0).at("service_time_us").at("p99").is_null());
  EXPECT_EQ(of_run.at("intervals").at(0).at("service_time_us").at("max"), 200);
}

TEST(WriteResult, ReplacesWhatIsNoUtf8) {
  Result result = sample_result({});
  result.faults = {"\xff"};
  EXPECT_EQ(nlohmann::json::parse(result_text(result)).at("faults").at(0), "\xef\xbf\xbd");
}

}  // namespace
}  // namespace offload::results
