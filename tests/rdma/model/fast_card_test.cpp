#include "softcard/card/fast_card.hpp"

#include <gtest/gtest.h>

#include "tests/rdma/queue_owner.hpp"

namespace offload::rdma::model::test {
namespace {

class FastCardTest : public testing::Test {
 protected:
  FastCardTest() { card_.connect(card_.add(one_.queues), card_.add(other_.queues)); }

  static wire::SendWork work_of(wire::Opcode opcode, const wire::LocalBuffer* buffers,
                                std::uint32_t count, const void* remote) {
    wire::SendWork work;
    work.opcode = opcode;
    work.flags = wire::kSignaled;
    work.buffers = buffers;
    work.buffer_count = count;
    work.remote = {address(remote), 0};
    return work;
  }
  static std::uint64_t address(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

  std::optional<wire::Completion> carry_out(const wire::SendWork& work) {
    EXPECT_EQ(one_.post(work), wire::Posted::done);
    one_.publish();
    card_.progress();
    return one_.poll();
  }

  QueueOwner one_{{16, 4}, 0x40};
  QueueOwner other_{{16, 4}, 0x41};
  FastCard card_;
};

TEST_F(FastCardTest, WritesBuffersAndInlineData) {
  const std::uint64_t from[] = {1, 2, 3, 4, 5, 6, 7, 8};
  std::uint64_t to[8]{};
  const wire::LocalBuffer buffers[] = {{address(from), 8, 0}, {address(&from[4]), 16, 0}};
  for (std::uint64_t lap = 0; lap < 50; ++lap) {
    ASSERT_TRUE(carry_out(work_of(wire::Opcode::rdma_write, buffers, 2, to)).has_value());
    EXPECT_EQ(to[0], 1U);
    EXPECT_EQ(to[2], 6U);
    wire::SendWork work = work_of(wire::Opcode::rdma_write, nullptr, 0, to);
    work.inline_data = from;
    work.inline_length = sizeof from;  // two blocks, which wrap in turn
    const auto completion = carry_out(work);
    ASSERT_TRUE(completion.has_value());
    EXPECT_EQ(completion->kind, wire::CqeKind::request);
    EXPECT_EQ(completion->queue, 0x40U);
    EXPECT_TRUE(std::equal(from, from + 8, to));
    to[0] = to[2] = 0;
  }
  EXPECT_EQ(card_.entries(), 100U);
  EXPECT_EQ(card_.faults(), 0U);
}

TEST_F(FastCardTest, AddsAndTellsWhatWasThere) {
  std::uint64_t word = 40;
  std::uint64_t before = 0;
  const wire::LocalBuffer result{address(&before), 8, 0};
  wire::SendWork work = work_of(wire::Opcode::fetch_add, &result, 1, &word);
  work.compare_add = 2;
  ASSERT_TRUE(carry_out(work).has_value());
  EXPECT_EQ(before, 40U);
  EXPECT_EQ(word, 42U);
}

TEST_F(FastCardTest, ASendWaitsForItsReceive) {
  const std::uint64_t from = 77;
  std::uint64_t to = 0;
  const wire::LocalBuffer buffer{address(&from), 8, 0};
  EXPECT_EQ(carry_out(work_of(wire::Opcode::send, &buffer, 1, nullptr)), std::nullopt);
  ASSERT_EQ(other_.post_receive({address(&to), 8, 0}), wire::Posted::done);
  card_.progress();
  EXPECT_TRUE(one_.poll().has_value());
  const auto came = other_.poll_receive();
  ASSERT_TRUE(came.has_value());
  EXPECT_EQ(came->kind, wire::CqeKind::received_send);
  EXPECT_EQ(came->byte_count, 8U);
  EXPECT_EQ(to, 77U);
}

TEST_F(FastCardTest, OneCompletionForEntriesThatAreNotSignaled) {
  wire::SendWork work;
  ASSERT_EQ(one_.post(work), wire::Posted::done);
  work.flags = wire::kSignaled;
  ASSERT_TRUE(carry_out(work).has_value());
  EXPECT_EQ(one_.sent.completed, 2U);
  EXPECT_EQ(one_.poll(), std::nullopt);
}

TEST_F(FastCardTest, AnEntryOfAnotherQueueOrAnUnknownOneIsAFault) {
  const wire::LocalBuffer buffer{address(&card_), 8, 0};
  EXPECT_EQ(carry_out(work_of(wire::Opcode::rdma_read, &buffer, 1, &card_)), std::nullopt);
  EXPECT_EQ(card_.faults(), 1U);
  ASSERT_EQ(other_.post({}), wire::Posted::done);
  other_.queues.send.ring.at(0, 0).words[1] ^= wire::big_endian(0x100);
  other_.publish();
  card_.progress();
  EXPECT_EQ(card_.faults(), 2U);
}

}  // namespace
}  // namespace offload::rdma::model::test
