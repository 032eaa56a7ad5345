#pragma once

#include <gtest/gtest.h>

namespace offload::kernels::test {

/// The base of the suites of test bodies: skips where their runner has nothing to run on.
template <class Runner>
class RunnerSuite : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = Runner::unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

}  // namespace offload::kernels::test
