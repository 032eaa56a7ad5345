#include "apps/client/report/client_metrics.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace offload::client {
namespace {

using namespace std::chrono_literals;

std::string page_of(const ClientMetrics& metrics) {
  telemetry::Exposition page(false);
  metrics.collect(page);
  return page.text();
}

void expect_sample(const ClientMetrics& metrics, const std::string& line) {
  const std::string page = page_of(metrics);
  EXPECT_NE(page.find("\noffload_client_" + line + "\n"), std::string::npos) << line << "\n"
                                                                             << page;
}

std::unique_ptr<Interval> an_interval() {
  auto interval = std::make_unique<Interval>();
  interval->sent = 5;
  interval->answered = 4;
  interval->valid = 3;
  interval->tx_bytes = 85;
  interval->rx_bytes = 68;
  interval->due = 6;
  interval->noticed_late = 1;
  interval->held_back = 2;
  interval->in_flight_ns = 1.5e9;
  interval->errors.add(ErrorKind::mismatch);
  interval->connect.record(100us);
  for (const std::chrono::microseconds latency : {3us, 30us, 20'000'000us}) {
    interval->service.record(latency);
  }
  interval->response.record(40us);
  interval->lag.record(2us);
  return interval;
}

TEST(ClientMetrics, IntervalsAddUp) {
  ClientMetrics metrics(true);
  for (int i = 0; i < 2; ++i) metrics.add(*an_interval());
  expect_sample(metrics, "requests_total 10");
  expect_sample(metrics, "responses_total 8");
  expect_sample(metrics, "valid_responses_total 6");
  expect_sample(metrics, "transmit_bytes_total 170");
  expect_sample(metrics, "receive_bytes_total 136");
  expect_sample(metrics, "due_requests_total 12");
  expect_sample(metrics, "noticed_late_total 2");
  expect_sample(metrics, "held_back_total 4");
  expect_sample(metrics, "in_flight_seconds_total 3");
  expect_sample(metrics, "connects_total 2");
  expect_sample(metrics, "errors_total{kind=\"mismatch\"} 2");
  expect_sample(metrics, "errors_total{kind=\"late\"} 0");
  const std::string first(name_of(ErrorKind::first_refusal));
  EXPECT_EQ(page_of(metrics).find("kind=\"" + first + "\""), std::string::npos);
  auto refused = std::make_unique<Interval>();
  refused->errors.add(ErrorKind::first_refusal);
  metrics.add(*refused);
  expect_sample(metrics, "errors_total{kind=\"" + first + "\"} 1");
}

TEST(ClientMetrics, LatenciesAreInBuckets) {
  ClientMetrics metrics(true);
  metrics.add(*an_interval());
  expect_sample(metrics, "service_time_seconds_count 3");
  expect_sample(metrics, "service_time_seconds_bucket{le=\"2.5e-06\"} 0");
  expect_sample(metrics, "service_time_seconds_bucket{le=\"5e-06\"} 1");
  expect_sample(metrics, "service_time_seconds_bucket{le=\"2.5e-05\"} 1");
  expect_sample(metrics, "service_time_seconds_bucket{le=\"5e-05\"} 2");
  expect_sample(metrics, "service_time_seconds_bucket{le=\"10\"} 2");
  expect_sample(metrics, "service_time_seconds_bucket{le=\"+Inf\"} 3");
  expect_sample(metrics, "response_time_seconds_count 1");
  expect_sample(metrics, "schedule_lag_seconds_count 1");
  const std::string page = page_of(metrics);
  const double sum =
      std::stod(page.substr(page.find("\noffload_client_service_time_seconds_sum ") + 41));
  EXPECT_NEAR(sum, 20.000033, 0.08);
}

TEST(ClientMetrics, TheFirstBucketIsUpToAMicrosecond) {
  ClientMetrics metrics(false);
  const auto interval = std::make_unique<Interval>();
  interval->service.record(500ns);
  metrics.add(*interval);
  expect_sample(metrics, "service_time_seconds_bucket{le=\"1e-06\"} 1");
}

TEST(ClientMetrics, AClosedLoopHasNoFiguresOfASchedule) {
  ClientMetrics metrics(false);
  metrics.add(*an_interval());
  for (const char* const word : {"response_time", "lag", "due", "late_total", "held"}) {
    EXPECT_EQ(page_of(metrics).find(word), std::string::npos) << word;
  }
  EXPECT_EQ(metrics.status().at("stages").size(), 1U);
}

TEST(ClientMetrics, ReadinessIsWhetherARunIsUnderWay) {
  ClientMetrics metrics(true);
  EXPECT_TRUE(metrics.health().holds);
  EXPECT_FALSE(metrics.readiness().holds);
  metrics.begin_run();
  EXPECT_TRUE(metrics.readiness().holds);
  expect_sample(metrics, "running 1");
  expect_sample(metrics, "runs_total 0");
  metrics.end_run();
  EXPECT_FALSE(metrics.readiness().holds);
  expect_sample(metrics, "running 0");
  expect_sample(metrics, "runs_total 1");
}

TEST(ClientMetrics, TheStatusHasTotalsAndBuckets) {
  ClientMetrics metrics(true);
  metrics.add(*an_interval());
  const auto status = metrics.status();
  EXPECT_EQ(status.at("totals").at("requests"), 5);
  EXPECT_EQ(status.at("totals").at("errors"), 1);
  EXPECT_EQ(status.at("errors").at("mismatch"), 1);
  EXPECT_EQ(status.at("stages").at("service time").size(), status.at("bounds_ns").size() + 1);
  EXPECT_EQ(status.at("stages").at("service time").back(), 1);
  for (const char* const stage : {"response time", "schedule lag"}) {
    const auto buckets = status.at("stages").at(stage).get<std::vector<int>>();
    EXPECT_EQ(buckets.size(), status.at("bounds_ns").size() + 1);
    EXPECT_EQ(std::accumulate(buckets.begin(), buckets.end(), 0), 1) << stage;
    EXPECT_EQ(buckets.back(), 0) << stage;
  }
}

}  // namespace
}  // namespace offload::client
