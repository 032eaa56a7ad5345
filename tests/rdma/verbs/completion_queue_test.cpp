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

}  // namespace
}  // namespace offload::rdma
