#include "apps/rdma_tasks/report.hpp"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

namespace offload::rdma_tool {
namespace {

BenchmarkResult bandwidth_result() {
  BenchmarkResult result;
  result.name = "write";
  result.size = 1 << 20;
  result.operations = 100;
  result.duration = std::chrono::seconds(2);
  result.checked = 7;
  return result;
}

BenchmarkResult latency_result() {
  BenchmarkResult result;
  result.name = "send";
  result.size = 8;
  result.operations = 1;
  result.latency.record(std::chrono::microseconds(2));
  return result;
}

TEST(Report, ABandwidthRunHasRatesAndNoLatency) {
  const std::array results{bandwidth_result()};
  const auto json = make_json({}, "fake0", "cpu", results);
  const auto& entry = json["results"][0];
  EXPECT_EQ(entry["bandwidth_mib_s"], 50.0);
  EXPECT_EQ(entry["message_rate_mps"], 50e-6);
  EXPECT_EQ(entry["duration_seconds"], 2.0);
  EXPECT_EQ(entry["checked"], 7);
  EXPECT_TRUE(entry["latency_us"].is_null());
  const std::string table = make_table({}, "fake0", "cpu", results);
  EXPECT_NE(table.find("average[MiB/s]"), std::string::npos);
  EXPECT_NE(table.find(" 50.00 "), std::string::npos) << table;
  EXPECT_NE(table.find(" 0.000050 "), std::string::npos) << table;
}

TEST(Report, ALatencyRunHasPercentilesAndARateOfZero) {
  const std::array results{latency_result()};
  const auto json = make_json({}, "fake0", "cpu", results);
  const auto& entry = json["results"][0];
  for (const char* const name : {"min", "mean", "p50", "p95", "p99_999", "max"}) {
    EXPECT_NEAR(entry["latency_us"][name].get<double>(), 2.0, 0.1) << name;
  }
  EXPECT_EQ(entry["bandwidth_mib_s"], 0.0);
  const std::string table = make_table({}, "fake0", "cpu", results);
  EXPECT_NE(table.find("p99.9[us]"), std::string::npos);
  EXPECT_NE(table.find("p99.999[us]"), std::string::npos);
  EXPECT_NE(table.find("  send\n"), std::string::npos) << table;
}

TEST(Report, TheOptionsOfTheRunAreThere) {
  Options options;
  options.operation = Operation::ordered;
  options.role = Role::responder;
  options.cm_address = "10.0.0.1";
  options.event_driven = true;
  options.shared_receives = true;
  const auto json = make_json(options, "fake0", "cpu", {});
  EXPECT_EQ(json["program"], "offload-rdma");
  EXPECT_EQ(json["operation"], "ordered");
  EXPECT_EQ(json["role"], "responder");
  EXPECT_EQ(json["device"], "fake0");
  EXPECT_EQ(json["transport"], "RC");
  EXPECT_EQ(json["connection"], "cm");
  EXPECT_EQ(json["completions"], "event-driven");
  EXPECT_EQ(json["shared_receives"], true);
  EXPECT_EQ(json["ordering"], "engine");
  EXPECT_EQ(json["initiator"], "cpu");
  EXPECT_EQ(make_table(options, "fake0", "cpu", {}).find("by cpu"), std::string::npos);
  options.initiator = Initiator::gpu;
  EXPECT_EQ(make_json(options, "fake0", "a kernel on gpu:0", {})["initiator"], "a kernel on gpu:0");
  EXPECT_NE(make_table(options, "fake0", "a kernel on gpu:0", {}).find("by a kernel on gpu:0"),
            std::string::npos);
  options.operation = Operation::copy;
  EXPECT_EQ(make_json(options, "fake0", "cpu", {})["connection"], "none");
  EXPECT_TRUE(make_json({}, "fake0", "cpu", {})["ordering"].is_null());
  EXPECT_EQ(make_json({}, "fake0", "cpu", {})["connection"], "descriptor");
}

}  // namespace
}  // namespace offload::rdma_tool
