#include "apps/worker/worker_metrics.hpp"

#include <gtest/gtest.h>

#include <memory>

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

}  // namespace
}  // namespace offload::worker
