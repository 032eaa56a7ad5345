#include "apps/server/view/server_metrics.hpp"

#include <gtest/gtest.h>

#include <string>

namespace offload::server {
namespace {

/// Each reason alone makes the server not ready, and the first of several is told.
TEST(ServerMetrics, AreReadyWhileClientsAreLetInAndAnswered) {
  ServerMetrics metrics({"echo"}, core::Duration{}, true);
  const auto now = core::Clock::now();
  EXPECT_EQ(metrics.readiness().why, "no worker answers");
  metrics.note_turn(now, true, false);
  EXPECT_TRUE(metrics.readiness().holds);
  metrics.note_room(false);
  EXPECT_FALSE(metrics.readiness().holds);
  EXPECT_EQ(metrics.readiness().why, "there is no room for another client");
  metrics.note_drained(true);
  EXPECT_EQ(metrics.readiness().why, "drained by a command");
  metrics.note_turn(now, true, true);
  EXPECT_EQ(metrics.readiness().why, "the server is shutting down");
  metrics.note_turn(now, true, false);
  metrics.note_drained(false);
  metrics.note_room(true);
  EXPECT_TRUE(metrics.readiness().holds);
}

}  // namespace
}  // namespace offload::server
