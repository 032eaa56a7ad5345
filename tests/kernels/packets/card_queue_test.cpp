#include "kernels/packets/card_queue.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/kernels/packets/card_wire.hpp"
#include "tests/kernels/packets/frame_maker.hpp"

/// Tests the behaviour that only a card's queue has; queue_suite.hpp tests all queues.
namespace offload::kernels::packets::test {
namespace {

using kernels::test::HostPlace;
using HostWire = CardWire<HostPlace>;
constexpr WaitLimit kLong{20'000'000'000};
constexpr WaitLimit kAtOnce{0};

/// A queue whose card is the test: nothing is carried out, and completions are written by hand.
class CardQueueTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kFrames = 8;

  rdma::test::ModelCard card_;
  CardEnd<HostPlace> end_{card_, kFrames, 0};
  const CardQueue& queue_ = end_.queue();
  std::uint32_t received_ = 0;

  /// Writes the completion at `index` of the receives.
  void complete(std::uint32_t index, const rdma::Completion& completion) {
    const rdma::CompletionQueue& to = queue_.receive.completions;
    to.entries[index & ((1U << to.log2) - 1)] = rdma::make_cqe(completion, index, to.log2);
  }
  static rdma::Completion came(std::uint32_t index, std::uint32_t bytes) {
    rdma::Completion completion{};
    completion.kind = rdma::CqeKind::received_send;
    completion.counter = static_cast<std::uint16_t>(index);
    completion.byte_count = bytes;
    return completion;
  }
  FrameBatch look() { return receive(SingleLane{}, queue_, received_, kFrames, kAtOnce); }
  WorkResult drop(const FrameBatch& batch) {
    return finish(SingleLane{}, queue_, queue_, received_, batch, kAtOnce,
                  [](const EthernetFrame&) { return Verdict::drop; });
  }
};

TEST_F(CardQueueTest, APacketIsAsTheCardSays) {
  EXPECT_EQ(look().count, 0U);
  EXPECT_EQ(queue_.receives->posted, kFrames);
  rdma::Completion completion = came(0, 100);
  completion.time = 4711;
  completion.ethernet = rdma::ethernet_word(true, false);
  complete(0, completion);
  complete(1, came(1, 2048));
  const FrameBatch batch = look();
  ASSERT_EQ(batch.count, 2U);
  const EthernetFrame packet = frame_at(queue_, batch, 0);
  EXPECT_EQ(packet.data, queue_.frames.bytes);
  EXPECT_EQ(packet.length, 100U);
  EXPECT_EQ(packet.time, 4711U);
  EXPECT_TRUE(packet.ip_is_right);
  EXPECT_FALSE(packet.transport_is_right);
  EXPECT_EQ(frame_at(queue_, batch, 1).length, 2048U);
  EXPECT_EQ(drop(batch), WorkResult::done);
  EXPECT_EQ(end_.frames_at_home(), 2 * kFrames);
}

/// Each of these completions yields no packet, fails the queue with its reason, and touches no
/// frame of another receive.
TEST_F(CardQueueTest, ACompletionThatCannotBeIsNoPacket) {
  look();
  rdma::Completion wrong = came(0, 2049);
  complete(0, wrong);
  EXPECT_EQ(frame_at(queue_, {0, 1}, 0).data, nullptr);
  wrong = came(0, 60);
  wrong.kind = rdma::CqeKind::request;
  complete(0, wrong);
  EXPECT_EQ(frame_at(queue_, {0, 1}, 0).data, nullptr);
  complete(0, came(1, 60));  // another receive's: its frame still belongs to the card
  ASSERT_EQ(look().count, 1U);
  EXPECT_EQ(drop({0, 1}), WorkResult::failed);
  EXPECT_EQ(end_.frames_at_home(), 2 * kFrames - 1);
  EXPECT_EQ(rdma::QueueError{static_cast<std::uint32_t>(queue_.receives->error)}.syndrome(),
            rdma::Syndrome::bad_response);
}

TEST_F(CardQueueTest, AReceiveThatFailedEndsTheQueueAndItsFrameComesHome) {
  look();
  rdma::Completion failed = came(0, 0);
  failed.kind = rdma::CqeKind::receive_error;
  failed.syndrome = rdma::Syndrome::local_length;
  complete(0, failed);
  const FrameBatch batch = look();
  ASSERT_EQ(batch.count, 1U);
  EXPECT_EQ(drop(batch), WorkResult::failed);
  EXPECT_EQ(end_.frames_at_home(), 2 * kFrames);
  EXPECT_EQ(rdma::QueueError{static_cast<std::uint32_t>(queue_.receives->error)}.syndrome(),
            rdma::Syndrome::local_length);
}

/// Whatever a card writes as completions: packets are within frames that were posted, and no frame
/// is in two places.
TEST_F(CardQueueTest, NoCompletionIsBelieved) {
  std::minstd_rand random(17);
  const std::uint32_t log2 = queue_.receive.completions.log2;
  std::uint32_t packets = 0;
  for (int round = 0; round < 200'000; ++round) {
    look();
    rdma::Cqe cqe = rdma::make_cqe(came(received_, 60), received_, log2);
    const std::uint32_t word = random() % 2 == 0 ? random() % 16 : rdma::kCqeByteCount;
    cqe.words[word] ^= rdma::big_endian(1U << random() % 32);
    queue_.receive.completions.entries[received_ & (kFrames - 1)] = cqe;
    const FrameBatch batch = look();
    if (batch.count == 0) continue;  // its owner's bit, or its kind
    ASSERT_EQ(batch.count, 1U);
    const EthernetFrame packet = frame_at(queue_, batch, 0);
    if (packet.data != nullptr) {
      ++packets;
      ASSERT_TRUE(queue_.frames.holds({packet.address, packet.length, 0}));
      ASSERT_EQ(packet.address % HostWire::kFrameBytes, 0U);
      ASSERT_LT(packet.address, std::uint64_t{kFrames} * HostWire::kFrameBytes);
    }
    // A wrong counter of a receive loses a frame; the test gives it back to go on.
    const bool is_lost = packet.data == nullptr && packet.address == ~std::uint64_t{0};
    const std::uint64_t frame = queue_.posted[received_ & (kFrames - 1)];
    drop(batch);
    if (is_lost) give_back(SingleLane{}, queue_.frames, true, frame, kAtOnce);
    ASSERT_EQ(end_.frames_at_home(), 2 * kFrames);
  }
  EXPECT_GT(packets, 10'000U);
}

/// Nor are completions of sends trusted: a counter of an entry that is not in progress fails the
/// queue, and returns no frame.
TEST_F(CardQueueTest, ACounterOfNoEntryIsAnError) {
  const auto write = [](std::uint8_t*, std::uint32_t) { return 60U; };
  ASSERT_EQ(send_new(SingleLane{}, queue_, 1, kAtOnce, write), 1U);
  const rdma::CompletionQueue& to = queue_.send.queue.completions;
  rdma::Completion completion{};
  completion.kind = rdma::CqeKind::request;
  completion.opcode = rdma::Opcode::send;
  completion.counter = 5;
  to.entries[0] = rdma::make_cqe(completion, 0, to.log2);
  EXPECT_EQ(recycle(SingleLane{}, queue_, kAtOnce), 0U);
  EXPECT_EQ(error_of(SingleLane{}, queue_.send).syndrome(), rdma::Syndrome::bad_response);
  const std::uint32_t left = end_.frames_at_home();
  EXPECT_EQ(send_new(SingleLane{}, queue_, 1, kAtOnce, write), 0U);
  EXPECT_EQ(end_.frames_at_home(), left);  // the frame that was taken is back
  EXPECT_EQ(send(SingleLane{}, queue_, true, {0, 60, 0}, kAtOnce), WorkResult::failed);
}

/// Another group has begun to give frames back to the first home, and does not finish.
TEST_F(CardQueueTest, RecyclesFramesOfOtherHomesWhenOneIsStuck) {
  reserve(SingleLane{}, *queue_.frames.homes[0].order, 1);
  const rdma::CompletionQueue& to = queue_.send.queue.completions;
  for (std::uint16_t i = 0; i < 2; ++i) {
    const std::uint64_t frame = std::uint64_t{i} * kFrames * HostWire::kFrameBytes;
    ASSERT_EQ(send(SingleLane{}, queue_, true, {frame, 60, 0}, kAtOnce), WorkResult::done);
    rdma::Completion completion{};
    completion.kind = rdma::CqeKind::request;
    completion.opcode = rdma::Opcode::send;
    completion.counter = i;
    to.entries[i] = rdma::make_cqe(completion, i, to.log2);
    EXPECT_EQ(recycle(SingleLane{}, queue_, kAtOnce), 1U);
    EXPECT_EQ(*queue_.frames.homes[i].ring.producer, kFrames + i);
    EXPECT_EQ(queue_.send.state->under_way, 0U) << "its blocks are free again";
  }
}

TEST(CardQueue, WhatIsBehindAGapWaitsForIt) {
  HostWire wire(8);
  const CardQueue& queue = wire.queue();
  wire.start();
  std::uint64_t first = 0;
  ASSERT_EQ(reserve(SingleLane{}, queue, 1, kLong, first), WorkResult::done);
  const std::uint64_t frame = 8 * HostWire::kFrameBytes;
  queue.frames.bytes[frame] = 2;
  // Neither send waits for the other.
  EXPECT_EQ(send(SingleLane{}, queue, true, {frame, 60, 0}, kAtOnce), WorkResult::done);
  EXPECT_EQ(recycle(SingleLane{}, queue, kAtOnce), 0U);
  queue.frames.bytes[frame + HostWire::kFrameBytes] = 1;
  EXPECT_EQ(
      send_at(SingleLane{}, queue, first, true, {frame + HostWire::kFrameBytes, 60, 0}, kLong),
      WorkResult::done);
  wire.drain(2);
  EXPECT_EQ(wire.stop(), "");
  ASSERT_EQ(wire.sent().size(), 2U);
  EXPECT_EQ(wire.sent()[0][0], 1);
  EXPECT_EQ(wire.sent()[1][0], 2);
}

/// Invalid packets are omitted, and their frames are returned.
TEST(CardQueue, LeavesOutWhatIsNoFrame) {
  HostWire wire(8, rdma::kMostInlineHeader);
  const CardQueue& queue = wire.queue();
  wire.start();
  constexpr std::uint64_t kFrame = 8 * HostWire::kFrameBytes;
  const FrameDescriptor packets[] = {{kFrame, rdma::kLeastFrame - 1, 0},
                                     {kFrame + 2048, 2049, 0},
                                     {16 * HostWire::kFrameBytes, 60, 0},
                                     nothing_to_send(),
                                     {kFrame + 4096, rdma::kLeastFrame, 0},
                                     {kFrame + 6144, 18, 0},
                                     {kFrame + 8192, 19, 0}};
  for (const FrameDescriptor& packet : packets) {
    EXPECT_EQ(send(SingleLane{}, queue, true, packet, kLong), WorkResult::done);
  }
  wire.drain(3);
  std::uint32_t completed = 0;
  Wait wait(kLong);
  while (completed < 7 && !wait.is_over()) completed += recycle(SingleLane{}, queue, kLong);
  EXPECT_EQ(completed, 7U);
  EXPECT_EQ(wire.stop(), "");
  ASSERT_EQ(wire.sent().size(), 3U);
  EXPECT_EQ(wire.sent()[0].size(), rdma::kLeastFrame);
  EXPECT_EQ(wire.sent()[1].size(), 18U);
  EXPECT_EQ(wire.sent()[2].size(), 19U);
}

/// The card writes the checksums that a descriptor asks for, and reports its own checks of them.
TEST(CardQueue, LeavesChecksumsToTheCard) {
  HostWire wire(8);
  const CardQueue& queue = wire.queue();
  wire.start();
  std::vector<Bytes> right;
  std::uint64_t frame = 8 * HostWire::kFrameBytes;
  for (const std::uint32_t protocol : {kUdp, kTcp}) {
    FrameKind kind;
    kind.protocol = protocol;
    kind.payload = 33;
    right.push_back(FrameMaker::make(kind));
    Bytes wrong = right.back();
    wrong[24] ^= 0x55;                          // of the IPv4 header
    wrong[protocol == kUdp ? 40 : 50] ^= 0x55;  // of the transport
    std::memcpy(queue.frames.bytes + frame, wrong.data(), wrong.size());
    const FrameDescriptor packet{frame, static_cast<std::uint32_t>(wrong.size()),
                                 rdma::kIpChecksum | rdma::kTransportChecksum};
    EXPECT_EQ(send(SingleLane{}, queue, true, packet, kLong), WorkResult::done);
    frame += HostWire::kFrameBytes;
  }
  wire.drain(2);
  EXPECT_EQ(wire.stop(), "");
  EXPECT_EQ(wire.sent(), right);
}

}  // namespace
}  // namespace offload::kernels::packets::test
