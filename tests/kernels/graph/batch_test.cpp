#include "tests/kernels/bodies/batch_body.hpp"
#include "tests/kernels/bodies/host_runner.hpp"

namespace offload::kernels::test {

TEST(RoomInBatch, HoldsRequestAndAnswer) {
  for (std::uint32_t length = 0; length < 2000; ++length) {
    const std::uint32_t room = room_in_batch(length);
    EXPECT_EQ(room % sizeof(Block), 0U);
    std::apply(
        [&](auto... service) {
          EXPECT_GE(room, std::max({length, service.response_length(length)...}));
        },
        Services{});
  }
  EXPECT_EQ(room_in_batch(kMaxMessageLength), kMaxMessageLength);
}

TEST(RoomInBatch, OfASlotHoldsAMessageOrABatch) {
  constexpr std::uint32_t kOfBatch = 64 * 48 + 5120;
  EXPECT_EQ(room_of_slot(0), kOfBatch);
  EXPECT_EQ(room_of_slot(kOfBatch), kOfBatch);
  EXPECT_EQ(room_of_slot(kOfBatch + 1), kOfBatch + 16);
  EXPECT_EQ(room_of_slot(kMaxMessageLength), kMaxMessageLength);
}

INSTANTIATE_TYPED_TEST_SUITE_P(Host, Batches, testing::Types<HostRunner>);

}  // namespace offload::kernels::test
