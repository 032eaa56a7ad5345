#include <chrono>

#include "rdma/verbs/completion_loop.hpp"
#include "tests/rdma_tasks/connection_fixture.hpp"
#include "tests/support/thrown.hpp"

/// Connections that share the completion queue of their engine.
namespace offload::rdma {
namespace {

using core::ErrorCode;
using core::Status;
using support::thrown_by;
using test::fake;

using SharedLoopTest = ConnectionTest;

TEST_F(SharedLoopTest, TheCompletionQueueTakesNoMoreThanItHasRoomFor) {
  connection_.start();
  Connection other({device_, domain_, registrar_, loop_}, small_queues(), "other");
  other.connect(engine_);
  EXPECT_EQ(thrown_by([&] { other.start(); }).code(), ErrorCode::full);
  connection_.stop();
  other.start();
  other.stop();
}

TEST_F(SharedLoopTest, AnEngineSleepsUntilTheChannelRings) {
  start_connected();
  EXPECT_EQ(engine_.arm(), core::Duration::max());
  engine_.disarm();
  EXPECT_EQ(fake().arms, 0);  // nothing is under way
  EXPECT_EQ(receive(), Status());
  turn();
  EXPECT_EQ(engine_.arm(), core::Duration::max());
  EXPECT_EQ(fake().arms, 1);
  fake().finish_receive(queue(), {});
  fake().ring();
  engine_.run_once(core::Clock::now() + std::chrono::seconds(10));
  engine_.disarm();
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"ok"});
  EXPECT_EQ(receive(), Status());
  turn();
  engine_.arm();
  EXPECT_EQ(fake().arms, 2);  // armed again after the event
  engine_.disarm();
}

}  // namespace
}  // namespace offload::rdma
