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

INSTANTIATE_TYPED_TEST_SUITE_P(Host, SlotBatches, testing::Types<HostRunner>);

}  // namespace offload::kernels::test
