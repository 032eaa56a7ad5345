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
