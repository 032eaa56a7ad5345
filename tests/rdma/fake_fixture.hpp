#pragma once

#include <gtest/gtest.h>

#include "progress/engine.hpp"
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

/// `engine` has one completion queue of a fake device and nothing to do. It must ask for an event
/// once each time that the last one has come, and may not sleep where this fails.
inline void expect_armed_once_per_event(progress::Engine& engine) {
  test::fake().fail_call = "req_notify_cq";
  EXPECT_EQ(engine.arm(), core::Duration{});
  engine.disarm();
  test::fake().fail_call.clear();
  const int arms = test::fake().arms;
  const int acknowledged = test::fake().acknowledged;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(engine.arm(), core::Duration::max());
    engine.disarm();
    EXPECT_EQ(test::fake().arms, arms + 1) << "the event has not come";
  }
  test::fake().ring();
  for (int i = 0; i < 20; ++i) engine.progress();
  EXPECT_EQ(test::fake().acknowledged, acknowledged + 1);
  EXPECT_EQ(engine.arm(), core::Duration::max());
  engine.disarm();
  EXPECT_EQ(test::fake().arms, arms + 2);
}

}  // namespace offload::rdma
