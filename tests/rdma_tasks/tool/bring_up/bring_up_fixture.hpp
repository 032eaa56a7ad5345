#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "apps/rdma_tasks/bring_up/bring_up.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/rdma/loopback_device.hpp"

namespace offload::rdma_tool {

using rdma::test::fake;
using Fault = rdma::test::LoopbackDevice::Fault;

/// A bring-up of the fake device, with lanes on CPU threads.
class BringUpFixture : public rdma::FakeDeviceTest {
 protected:
  BringUpFixture() {
    options_.run.initiator = Initiator::gpu;
    options_.run.gpu = kNoGpu;
    options_.run.timeout = core::seconds(20);
    options_.rate_time = std::chrono::milliseconds(1);
  }

  /// Takes the GPU of a test's parameter, or skips the test.
  void take_gpu(const std::string& gpu) {
    try {
      static_cast<void>(make_gpu_launcher(gpu));
    } catch (const core::Error& error) {
      GTEST_SKIP() << error.what();
    }
    options_.run.gpu = gpu;
  }
  /// Runs all steps; returns whether the data path is ready.
  bool run() {
    std::size_t shown = 0;
    BringUp bring_up(options_, signals_, [&](const StepFinding&) { ++shown; });
    findings_ = bring_up.run();
    EXPECT_EQ(shown, findings_.size());
    return is_ready(findings_);
  }
  [[nodiscard]] bool has(const std::string& step) const {
    return std::ranges::any_of(findings_, [&](const StepFinding& one) { return one.step == step; });
  }
  /// Returns the finding of a step, which must be there.
  [[nodiscard]] StepFinding at(const std::string& step) const {
    const auto found =
        std::ranges::find_if(findings_, [&](const StepFinding& one) { return one.step == step; });
    if (found != findings_.end()) return *found;
    ADD_FAILURE() << "no step " << step << " in\n" << text();
    return {};
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const StepFinding& one : findings_) all += make_text(one);
    return all;
  }
  /// Expects that a step has this verdict, these words, and something to do unless it is good.
  void expect(const std::string& step, StepVerdict verdict, const std::string& words) const {
    const StepFinding finding = at(step);
    EXPECT_EQ(finding.verdict, verdict) << text();
    EXPECT_NE(finding.found.find(words), std::string::npos) << finding.found;
    EXPECT_EQ(finding.to_fix.empty(), verdict < StepVerdict::warning) << make_text(finding);
  }
  /// Expects that the bring-up ends in an error at `step`, with these words and what to do.
  void expect_error(const std::string& step, const std::string& words, const std::string& to_fix) {
    EXPECT_FALSE(run());
    expect(step, StepVerdict::error, words);
    EXPECT_NE(at(step).to_fix.find(to_fix), std::string::npos) << at(step).to_fix;
  }

  BringUpOptions options_;
  core::Signals signals_;
  rdma::test::LoopbackDevice device_;
  StepFindings findings_;
};

}  // namespace offload::rdma_tool
