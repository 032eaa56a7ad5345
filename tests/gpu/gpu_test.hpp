#pragma once

#include <gtest/gtest.h>

#include "device/device.hpp"

namespace offload::gpu::test {

/// Tests that need a GPU; skipped where there is none.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto gpus = device::list_gpus(); gpus.devices.empty()) {
      GTEST_SKIP() << "no GPU: " << gpus.why_none;
    }
  }
};

}  // namespace offload::gpu::test
