#include "kernels/packets/queue.hpp"

#include "tests/kernels/bodies/host_groups.hpp"
#include "tests/kernels/packets/queue_suite.hpp"

/// Runs the suite on threads of the host, in parallel with a thread that is the driver or the card;
/// also under ThreadSanitizer.
namespace offload::kernels::packets::test {
namespace {

using kernels::test::HostGroups;
using Thread = HostGroups<1, 4, 200>;
using Warp = HostGroups<16, 1, 12>;
using Groups = HostGroups<4, 3, 20>;

using Setups = testing::Types<WithRings<Thread>, WithRings<Warp>, WithRings<Groups>,
                              WithCard<Thread, 0>, WithCard<Warp, rdma::kMostInlineHeader>,
                              WithCard<Groups, rdma::kLeastFrame>, WithCard<Thread, 0, 4711>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Host, PacketQueues, Setups);
using Runners = testing::Types<Thread, Groups>;
INSTANTIATE_TYPED_TEST_SUITE_P(Host, PacketFunctions, Runners);

TEST(PacketQueue, DropsWhatPointsOutOfTheFrames) {
  Wire wire(8);
  const Queue& queue = wire.queue();
  for (const FrameDescriptor wrong :
       {FrameDescriptor{16 * Wire::kFrameBytes, 60, 0}, FrameDescriptor{~0ULL, 60, 0},
        FrameDescriptor{256, Wire::kFrameBytes - 255, 0}, FrameDescriptor{256, ~0U, 0}}) {
    queue.receive.entries[0] = wrong;
    EXPECT_EQ(frame_at(queue, {0, 1}, 0).data, nullptr);
  }
  queue.receive.entries[0] = {256, Wire::kFrameBytes - 256, 0};
  EXPECT_NE(frame_at(queue, {0, 1}, 0).data, nullptr);
}

TEST(PacketQueue, SaysThatAnotherDoesNotSend) {
  Wire wire(8);
  const Queue& queue = wire.queue();
  reserve(SingleLane{}, *queue.send_order, 1);  // and never published
  EXPECT_EQ(send(SingleLane{}, queue, true, {0, 60, 0}, {1'000'000}), WorkResult::timed_out);
}

/// Another group has begun to give frames back to the first home, and does not finish.
TEST(PacketQueue, RecyclesFramesOfOtherHomesWhenOneIsStuck) {
  Wire wire(8);
  const Queue& queue = wire.queue();
  reserve(SingleLane{}, *queue.frames.homes[0].order, 1);
  const Ring<std::uint64_t>& completions = queue.completions.ring;
  completions.at(0) = 0;
  completions.at(1) = 8 * Wire::kFrameBytes;
  *completions.producer = 1;
  EXPECT_EQ(recycle(SingleLane{}, queue, {1'000'000}), 1U);
  EXPECT_EQ(*queue.frames.homes[0].ring.producer, 8U);
  *completions.producer = 2;
  EXPECT_EQ(recycle(SingleLane{}, queue, {1'000'000}), 1U);
  EXPECT_EQ(*queue.frames.homes[1].ring.producer, 9U);
}

}  // namespace
}  // namespace offload::kernels::packets::test
