#include "apps/worker/worker_metrics.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "telemetry/trace.hpp"

namespace offload::worker {
namespace {

/// The metrics of a program with two GPUs.
class WorkerMetricsTest : public testing::Test {
 protected:
  WorkerMetricsTest() {
    metrics_.add("gpu-0", first_);
    metrics_.add("gpu-1", second_);
    metrics_.note_turn(core::Clock::now(), false);
  }
  std::shared_ptr<WorkerCounts> first_ = std::make_shared<WorkerCounts>();
  std::shared_ptr<WorkerCounts> second_ = std::make_shared<WorkerCounts>();
  WorkerMetrics metrics_;
};

TEST_F(WorkerMetricsTest, AreReadyOnceEachWorkerIsAttached) {
  EXPECT_EQ(metrics_.readiness().why, "gpu-0: not attached to a server");
  first_->attached.set(1);
  EXPECT_FALSE(metrics_.readiness().holds);
  EXPECT_EQ(metrics_.readiness().why, "gpu-1: not attached to a server");
  second_->attached.set(1);
  EXPECT_TRUE(metrics_.readiness().holds);
  first_->attached.set(0);
  EXPECT_EQ(metrics_.readiness().why, "gpu-0: not attached to a server");
}

TEST_F(WorkerMetricsTest, AreNotReadyWhileTheProgramLeaves) {
  first_->attached.set(1);
  second_->attached.set(1);
  metrics_.note_turn(core::Clock::now(), true);
  EXPECT_FALSE(metrics_.readiness().holds);
}

TEST_F(WorkerMetricsTest, OfBothWorkersAreAddedUp) {
  first_->describe({"cuda", "shared memory"});
  first_->attached.set(1);
  second_->attached.set(1);
  first_->stuck.set(1);
  second_->stuck.set(2);
  EXPECT_EQ(first_->times_of(2).size(), 2U);
  EXPECT_EQ(first_->times_of(1).size(), 1U);  // of a server with fewer channels
  EXPECT_EQ(first_->times().size(), 2U);
  for (const auto& times : first_->times()) {
    times->turns.busy.set(2'000'000'000);
    times->service.record(std::chrono::nanoseconds(1));
  }
  telemetry::Exposition page(false);
  metrics_.collect(page);
  const auto has_line = [&](const std::string& line) {
    return ("\n" + page.text()).find("\n" + line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has_line("offload_worker_attached 2")) << page.text();
  EXPECT_TRUE(has_line("offload_worker_stuck_channels 3"));
  EXPECT_TRUE(has_line("offload_worker_busy_seconds_total 4"));
  EXPECT_TRUE(has_line("offload_worker_service_duration_seconds_count 2"));
  EXPECT_TRUE(has_line("offload_worker_info{backend=\"cuda\"} 1"));
  EXPECT_EQ(page.text().find("backend=\"\""), std::string::npos);  // the second has none yet
  EXPECT_TRUE(has_line("offload_worker_ready 1"));
}

TEST_F(WorkerMetricsTest, OfEachChannelAreToldApart) {
  for (const auto& times : second_->times_of(2)) times->turns.busy.set(2'000'000'000);
  second_->times()[1]->turns.busy.set(3'000'000'000);
  telemetry::Exposition page(true);
  metrics_.collect(page);
  for (const char* const line :
       {"\noffload_worker_attached{worker=\"0\"} 0\n",
        "\noffload_worker_busy_seconds_total{worker=\"1\",channel=\"0\"} 2\n",
        "\noffload_worker_busy_seconds_total{worker=\"1\",channel=\"1\"} 3\n"}) {
    EXPECT_NE(page.text().find(line), std::string::npos) << line << " is not in " << page.text();
  }
}

TEST_F(WorkerMetricsTest, AreHealthyWhileTheProgramTurns) {
  EXPECT_TRUE(metrics_.health().holds);
  metrics_.note_turn(core::Clock::now() - 2 * telemetry::TurnWatch::kLongestTurn, false);
  EXPECT_FALSE(metrics_.health().holds);
}

TEST_F(WorkerMetricsTest, TheStatusIsOfEachWorker) {
  second_->describe({"cpu", "a thread sends responses"});
  second_->attached.set(1);
  second_->channels.set(2);
  for (const auto& times : second_->times_of(2)) {
    times->service.record(core::seconds(20));
    times->turns.busy.set(5);
  }
  second_->events.add("the first");
  first_->events.add("the second");
  const nlohmann::json status = metrics_.status();
  const nlohmann::json& worker = status["workers"].at(1);
  EXPECT_EQ(worker["name"], "gpu-1");
  EXPECT_EQ(worker["backend"], "cpu");
  EXPECT_EQ(worker["data_path"], "a thread sends responses");
  EXPECT_EQ(worker["attached"], true);
  EXPECT_EQ(worker["channels"], 2);
  EXPECT_EQ(worker["busy_ns"], 10);
  EXPECT_EQ(worker["service"].back(), 2);
  EXPECT_EQ(worker["service"].front(), 0);
  EXPECT_EQ(status["workers"][0]["attached"], false);
  EXPECT_EQ(status["workers"][0]["busy_ns"], 0);
  EXPECT_EQ(status["events"][0]["text"], "the first");
  EXPECT_EQ(status["events"][1]["text"], "the second");
}

TEST_F(WorkerMetricsTest, TheTraceHasTheSamplesOfEachChannel) {
  const auto at = [](int ns) { return core::TimePoint{} + std::chrono::nanoseconds(ns); };
  first_->times_of(2)[1]->add_sample(at(1000), at(3000), 64);
  second_->times_of(1)[0]->add_sample(at(2000), at(2500), 32);
  telemetry::Trace trace("offload-worker");
  metrics_.trace(trace);
  const std::string text = trace.text();
  EXPECT_NE(text.find("gpu-0, channel 1"), std::string::npos) << text;
  EXPECT_NE(text.find("gpu-1, channel 0"), std::string::npos);
  EXPECT_NE(text.find("\"ts\":1.000,\"dur\":2.000"), std::string::npos);
  EXPECT_NE(text.find("\"ts\":2.000,\"dur\":0.500"), std::string::npos);
}

}  // namespace
}  // namespace offload::worker
