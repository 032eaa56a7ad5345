#include "tests/kernels/bodies/host_runner.hpp"
#include "tests/kernels/bodies/slot_batch_body.hpp"

namespace offload::kernels::test {

TEST(SlotBatch, RoomHoldsRequestAndFrame) {
  for (const std::uint32_t length : {0U, 1U, 47U, 48U, 49U, 1024U}) {
    std::apply(
        [&](auto... service) {
          EXPECT_GE(batch_room(length),
                    kFrameHeader + std::max({service.response_length(length)...}));
        },
        Services{});
    EXPECT_GE(batch_room(length), length + batch_table(1));
  }
}

// One block a lane for messages of the mean length; no tile beyond the group or a warp.
TEST(SlotBatch, TilesAreAsLargeAsMessagesAre) {
  EXPECT_EQ(lanes_for(64 * 64, 64, 32), 4U);
  EXPECT_EQ(lanes_for(64 * 65, 64, 32), 8U);
  EXPECT_EQ(lanes_for(64 * 16, 64, 32), 1U);
  EXPECT_EQ(lanes_for(0, 64, 32), 1U);
  EXPECT_EQ(lanes_for(1024, 1, 512), 32U);
  EXPECT_EQ(lanes_for(1024, 1, 1), 1U);
}

/// Overwrites the table of the batch in its slot as soon as its lengths are used, as a malicious
/// server may.
struct SpoilingReverse {
  ChannelView channel;
  std::uint32_t count;

  [[nodiscard]] std::uint32_t response_length(std::uint32_t length) const {
    std::memset(channel.request(1).plain(), 0xff, batch_table(count));
    return length;
  }
  template <class Group, class Response>
  void operator()(const Group& group, const Request& request, const Response& response) const {
    Reverse{}(group, request, response);
  }
};

// A single lane reads the requests in the slot itself.
TEST(SlotBatch, LengthsThatWereCheckedAreUsedWhateverBecomesOfTheSlot) {
  TestChannel<HostRunner> channel(4, 1000);
  const auto messages = messages_of({200, 0, 201, 7, 200});
  channel.post(1, batch_of(messages), 5);
  Staging staging;
  const SpoilingReverse service{channel.channel(), 5};
  EXPECT_EQ(serve(SingleLane{}, channel.channel(), 1, service, staging), Outcome::answered);
  EXPECT_EQ(channel.response(1, 5), frames_of("reverse", messages));
}

INSTANTIATE_TYPED_TEST_SUITE_P(Host, SlotBatches, testing::Types<HostRunner>);

}  // namespace offload::kernels::test
