#include "rdma/verbs/completion_queue.hpp"

#include <array>

#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::thrown_by;
using test::fake;

using CompletionQueueTest = FakeDeviceTest;

TEST_F(CompletionQueueTest, ACompletionQueueThatFailsSaysSo) {
  const DeviceContext device("fake0");
  CompletionQueue completions(device, 16);
  std::array<ibv_wc, 4> room{};
  fake().completions.resize(5);
  EXPECT_EQ(completions.poll(room).size(), 4U);
  EXPECT_EQ(completions.poll(room).size(), 1U);
  EXPECT_FALSE(completions.failed());
  fake().fail_call = "poll_cq";
  EXPECT_TRUE(completions.poll(room).empty());
  EXPECT_TRUE(completions.failed());
  fake().fail_call = "req_notify_cq";
  EXPECT_EQ(completions.arm(), ErrorCode::driver);
  EXPECT_EQ(thrown_by([&] { completions.moderate(8, 10); }).code(), ErrorCode::not_supported);
  EXPECT_EQ(thrown_by([&] { const CompletionQueue none(device, 0); }).code(),
            ErrorCode::invalid_value);
}

TEST_F(CompletionQueueTest, EventsOfAChannelAreTakenAndAcknowledged) {
  const DeviceContext device("fake0");
  CompletionChannel channel(device);
  EXPECT_EQ(channel.take_events(), 0U);
  fake().ring();
  fake().ring();
  EXPECT_EQ(channel.take_events(), 2U);
  EXPECT_EQ(fake().acknowledged, 2);
}

TEST_F(CompletionQueueTest, AnEventSaysOfWhichQueueItIs) {
  const DeviceContext device("fake0");
  CompletionChannel channel(device);
  int context = 0;
  const CompletionQueue one(device, 16, &channel);
  const CompletionQueue other(device, 16, &channel, 0, &context);
  EXPECT_EQ(one.context(), nullptr);
  EXPECT_FALSE(channel.take_event());
  fake().rung = other.get();
  fake().ring();
  const auto event = channel.take_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->queue, other.get());
  EXPECT_EQ(event->context, &context);
  EXPECT_EQ(fake().acknowledged, 1);
}

}  // namespace
}  // namespace offload::rdma
