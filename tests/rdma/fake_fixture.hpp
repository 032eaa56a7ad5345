#pragma once

#include <gtest/gtest.h>

#include "rdma/path/connection_descriptor.hpp"
#include "rdma/verbs/gid.hpp"
#include "tests/rdma/fake_verbs.hpp"

namespace offload::rdma {

/// A fake device for each test, which must leave nothing open on it.
class FakeDeviceTest : public testing::Test {
 protected:
  FakeDeviceTest() { test::reset_fake(); }
  ~FakeDeviceTest() override { EXPECT_EQ(test::fake().open_objects(), 0); }
};

/// The other end of a queue pair of a fake device.
inline ConnectionDescriptor a_peer() {
  ConnectionDescriptor peer;
  peer.gid = parse_gid("10.0.0.2");
  peer.qp_num = 77;
  peer.psn = 5;
  peer.max_dest_rd_atomic = 4;
  return peer;
}

}  // namespace offload::rdma
