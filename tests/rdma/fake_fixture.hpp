#pragma once

#include <gtest/gtest.h>

#include "tests/rdma/fake_verbs.hpp"

namespace offload::rdma {

/// A fake device for each test, which must leave nothing open on it.
class FakeDeviceTest : public testing::Test {
 protected:
  FakeDeviceTest() { test::reset_fake(); }
  ~FakeDeviceTest() override { EXPECT_EQ(test::fake().open_objects(), 0); }
};

}  // namespace offload::rdma
