#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/rdma/queue_error.hpp"
#include "kernels/rdma/queue_pair.hpp"
#include "rdma/queues/queue_memory.hpp"

/// Queues of one owner, whose completions the test writes.
namespace offload::kernels::rdma {
namespace {

class QueuePairTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kBlocks = 16;
  static constexpr std::uint32_t kReceives = 4;

  /// Posts a send of `bytes` inline bytes.
  Posted post(std::uint32_t bytes) {
    SendWork work;
    work.opcode = Opcode::send;
    work.flags = kSignaled;
    work.inline_data = data_.data();
    work.inline_length = bytes;
    return post_send(pair_.send, state_, work);
  }
  static void write(const CompletionQueue& queue, std::uint64_t index, CqeKind kind,
                    std::uint64_t counter) {
    Completion completion{};
    completion.kind = kind;
    completion.counter = static_cast<std::uint16_t>(counter);
    queue.entries[index & ((std::uint64_t{1} << queue.log2) - 1)] =
        make_cqe(completion, index, queue.log2);
  }
  /// Completes the entry at `position`, and polls.
  Completion complete(std::uint64_t position) {
    write(pair_.send.completions, written_++, CqeKind::request, position);
    Completion completion{};
    EXPECT_TRUE(poll_send(pair_.send, state_, completion));
    EXPECT_EQ(big_endian(*pair_.send.completions.record), written_);
    EXPECT_FALSE(poll_send(pair_.send, state_, completion));
    return completion;
  }
  [[nodiscard]] std::uint32_t record() const { return big_endian(*pair_.send.record); }

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory_ =
      std::vector<Line>(offload::rdma::queue_memory_bytes({kBlocks, kReceives}) / sizeof(Line));
  offload::rdma::QueuePairMemory pair_ = offload::rdma::lay_out_queues(
      std::as_writable_bytes(std::span(memory_)), {kBlocks, kReceives}, 7);
  SendState state_;
  std::array<std::uint8_t, 1024> data_{};
  std::uint64_t written_ = 0;
};

TEST_F(QueuePairTest, EntriesAreSeenOncePublished) {
  ASSERT_EQ(post(8), Posted::done);
  ASSERT_EQ(post(8), Posted::done);
  EXPECT_EQ(record(), 0U);
  EXPECT_EQ(*pair_.send.doorbell, 0U);
  publish(pair_.send, state_);
  EXPECT_EQ(record(), 2U);
  std::uint64_t newest = 0;
  std::memcpy(&newest, &pair_.send.ring.at(1, 0), sizeof newest);
  EXPECT_EQ(*pair_.send.doorbell, newest);
  *pair_.send.doorbell = 0;
  publish(pair_.send, state_);  // there is nothing new
  EXPECT_EQ(*pair_.send.doorbell, 0U);
}

TEST_F(QueuePairTest, TakesAsManyBlocksAsItsRingHas) {
  for (std::uint32_t i = 0; i < kBlocks; ++i) ASSERT_EQ(post(8), Posted::done) << i;
  EXPECT_EQ(post(8), Posted::full);
  publish(pair_.send, state_);
  complete(2);  // with those before it
  EXPECT_EQ(state_.completed, 3U);
  EXPECT_EQ(post(4 * kBlockBytes - 40), Posted::full) << "of four blocks";
  ASSERT_EQ(post(3 * kBlockBytes - 40), Posted::done) << "of three";
  EXPECT_EQ(post(8), Posted::full);
}

TEST_F(QueuePairTest, AnEntryHasAtMost63Segments) {
  EXPECT_EQ(post(62 * sizeof(Segment) - 4 + 1), Posted::invalid);
  EXPECT_EQ(state_.posted, 0U);
  EXPECT_EQ(post(62 * sizeof(Segment) - 4), Posted::done);
  EXPECT_EQ(state_.posted, kBlocks);
}

TEST_F(QueuePairTest, NoEntryIsLongerThanTheRing) {
  SendQueue queue = pair_.send;
  queue.ring.blocks = 2;
  SendWork work;
  work.opcode = Opcode::send;
  work.inline_data = data_.data();
  work.inline_length = 2 * kBlockBytes - 20;
  EXPECT_EQ(post_send(queue, state_, work), Posted::done);
  state_ = {};
  ++work.inline_length;
  EXPECT_EQ(post_send(queue, state_, work), Posted::invalid) << "it would wait for ever";
}

TEST_F(QueuePairTest, TheNewestEntryIsFreeAsAWhole) {
  ASSERT_EQ(post(100), Posted::done);  // of two blocks
  ASSERT_EQ(post(100), Posted::done);
  publish(pair_.send, state_);
  complete(0);
  EXPECT_EQ(state_.completed, 1U) << "only the ring has the length of the others";
  complete(2);
  EXPECT_EQ(state_.completed, 4U);
}

TEST_F(QueuePairTest, ACounterOfNoEntryInFlightIsAnError) {
  ASSERT_EQ(post(8), Posted::done);
  ASSERT_EQ(post(8), Posted::done);
  publish(pair_.send, state_);
  ASSERT_EQ(post(8), Posted::done);  // not published
  for (const std::uint64_t counter : {2U, 3U, 0xffffU}) {
    const Completion completion = complete(counter);
    EXPECT_EQ(completion.kind, CqeKind::request_error) << counter;
    EXPECT_EQ(completion.syndrome, Syndrome::bad_response) << counter;
    EXPECT_EQ(state_.completed, 0U);
  }
  EXPECT_EQ(complete(1).kind, CqeKind::request);
  EXPECT_EQ(complete(1).kind, CqeKind::request_error) << "it is done already";
}

// The card sees 16 bits of a position.
TEST_F(QueuePairTest, GoesOnForManyLaps) {
  for (std::uint64_t i = 0; i < 70'000; ++i) {
    ASSERT_EQ(post(8), Posted::done);
    publish(pair_.send, state_);
    ASSERT_EQ(record(), (i + 1) % 65536);
    ASSERT_EQ(complete(i).kind, CqeKind::request);
    ASSERT_EQ(state_.completed, i + 1);
  }
}

TEST_F(QueuePairTest, HasAsManyReceivesAsEntries) {
  ReceiveState state;
  Completion completion{};
  EXPECT_FALSE(poll_receive(pair_.receive, state, completion));
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const LocalBuffer buffer{4096 * (i + 1), 64, 9};
    ASSERT_EQ(post_receive(pair_.receive, state, buffer), Posted::done) << i;
    const Segment expected = data_segment(buffer);
    EXPECT_EQ(std::memcmp(&pair_.receive.ring[i % kReceives], &expected, sizeof expected), 0);
    if (i + 1 < kReceives) continue;
    EXPECT_EQ(post_receive(pair_.receive, state, buffer), Posted::full);
    publish(pair_.receive, state);
    EXPECT_EQ(big_endian(*pair_.receive.record), i + 1);
    write(pair_.receive.completions, i + 1 - kReceives, CqeKind::received_send, i);
    ASSERT_TRUE(poll_receive(pair_.receive, state, completion));
    EXPECT_EQ(completion.counter, i);
    EXPECT_EQ(big_endian(*pair_.receive.completions.record), i + 2 - kReceives);
    EXPECT_FALSE(poll_receive(pair_.receive, state, completion));
  }
}

TEST_F(QueuePairTest, HasAHandleForAUserWhoSeesItsMemoryElsewhere) {
  std::vector<Line> copy(memory_.size());
  const auto* const from = reinterpret_cast<const std::byte*>(memory_.data());
  auto* const to = reinterpret_cast<std::byte*>(copy.data());
  const SendQueue seen = as_seen_at(pair_.send, from, to);
  const auto expect_moved = [&](const void* now, const void* before) {
    EXPECT_EQ(static_cast<const std::byte*>(now) - to,
              static_cast<const std::byte*>(before) - from);
  };
  expect_moved(seen.ring.segments, pair_.send.ring.segments);
  expect_moved(seen.record, pair_.send.record);
  expect_moved(seen.doorbell, pair_.send.doorbell);
  expect_moved(seen.completions.entries, pair_.send.completions.entries);
  expect_moved(seen.completions.record, pair_.send.completions.record);
  EXPECT_EQ(seen.number, pair_.send.number);
}

TEST_F(QueuePairTest, ADoorbellHasTheEndAndTheQueue) {
  SendQueue queue = pair_.send;
  queue.number = 0x12'3456;
  ring_up_to(queue, 0x3'abcd, 0x9'1234'5678);
  EXPECT_EQ(record(), 0xabcdU);
  EXPECT_EQ(big_endian(*queue.completions.record), 0x34'5678U);
  std::uint32_t words[2];
  std::memcpy(words, queue.doorbell, sizeof words);
  EXPECT_EQ(big_endian(words[0]), 0xab'cd00U);
  EXPECT_EQ(big_endian(words[1]), 0x1234'5600U);
  queue.has_record = false;
  ring_up_to(queue, 0x3'abce, 7);
  EXPECT_EQ(record(), 0xabcdU);
  std::memcpy(words, queue.doorbell, sizeof words);
  EXPECT_EQ(big_endian(words[0]), 0xab'ce00U);
}

TEST(QueueErrorOfACompletion, HasAllItsParts) {
  Completion completion{};
  completion.kind = CqeKind::request_error;
  completion.syndrome = Syndrome::remote_operation;
  completion.vendor = 0x93;
  completion.counter = 0xabcd;
  const QueueError error = QueueError::of(completion);
  EXPECT_TRUE(error);
  EXPECT_EQ(error.syndrome(), Syndrome::remote_operation);
  EXPECT_EQ(error.vendor(), 0x93);
  EXPECT_EQ(error.counter(), 0xabcd);
  EXPECT_FALSE(QueueError{});
}

}  // namespace
}  // namespace offload::kernels::rdma
