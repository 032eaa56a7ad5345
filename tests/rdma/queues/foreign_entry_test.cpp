#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "rdma/queues/entry_reader.hpp"
#include "tests/rdma/queue_owner.hpp"
#include "tests/support/bytes.hpp"

/// Entries as NVIDIA's device functions write them: fields that a card ignores were never written.
/// They are read as if they were 0.
namespace offload::rdma {
namespace {

using wire::Opcode;

class ForeignEntryTest : public testing::Test {
 protected:
  /// Overwrites bytes with stale ones, as of an earlier entry of the ring.
  void leave_unset(std::uint32_t segment, std::size_t from, std::size_t to) {
    auto* const at =
        reinterpret_cast<std::byte*>(&owner_.queues.send.ring.at(entry_.position, segment));
    std::fill(at + from, at + to, std::byte{0xa5});
  }
  void leave_unset(const wire::SendWork& work, std::uint32_t segments) {
    constexpr std::size_t kSegment = sizeof(wire::Segment);
    leave_unset(0, 8, 11);
    const bool has_immediate =
        work.opcode == Opcode::send_with_imm || work.opcode == Opcode::rdma_write_with_imm;
    if (!has_immediate) leave_unset(0, 12, kSegment);
    if (wire::has_remote(work.opcode)) leave_unset(1, 12, kSegment);
    if (work.opcode == Opcode::fetch_add) leave_unset(2, 8, kSegment);
    if (work.opcode == Opcode::wait)
      leave_unset(1, work.awaited.is_time ? 4 : 0, work.awaited.is_time ? kSegment : 8);
    const std::size_t filled = (4 + work.inline_length) % kSegment;
    if (work.inline_length != 0 && filled != 0) leave_unset(segments - 1, filled, kSegment);
  }
  /// Posts it so, rings as those functions do, and reads it.
  void expect_read(wire::SendWork work) {
    SCOPED_TRACE("opcode " + std::to_string(static_cast<int>(work.opcode)));
    const std::uint32_t segments = wire::segments_of(work);
    entry_.position = owner_.sent.posted;
    ASSERT_EQ(owner_.post(work), wire::Posted::done);
    leave_unset(work, segments);
    const std::uint64_t end = owner_.sent.posted;
    wire::ring_doorbell(owner_.queues.send.doorbell, wire::doorbell_of(owner_.queues.send, end));
    ASSERT_TRUE(reader_.look());
    ASSERT_TRUE(reader_.read(entry_, inline_.data())) << reader_.fault();
    wire::store_record(owner_.queues.send.record, static_cast<std::uint32_t>(end & 0xffffU));
    reader_.pass(entry_);
    reader_.retire(end);
    owner_.sent.completed = end;

    const wire::SendWork& read = entry_.work;
    EXPECT_EQ(read.opcode, work.opcode);
    EXPECT_EQ(read.flags, work.flags);
    EXPECT_EQ(read.immediate, work.immediate);
    EXPECT_EQ(read.remote.address, work.remote.address);
    EXPECT_EQ(read.remote.rkey, work.remote.rkey);
    EXPECT_EQ(read.compare_add, work.compare_add);
    EXPECT_EQ(read.swap, work.swap);
    EXPECT_EQ(read.awaited.value, work.awaited.value);
    EXPECT_EQ(read.awaited.completions, work.awaited.completions);
    ASSERT_EQ(read.buffer_count, work.buffer_count);
    for (std::uint32_t i = 0; i < work.buffer_count; ++i) {
      EXPECT_EQ(read.buffers[i].address, work.buffers[i].address);
      EXPECT_EQ(read.buffers[i].length, work.buffers[i].length);
      EXPECT_EQ(read.buffers[i].lkey, work.buffers[i].lkey);
    }
    ASSERT_EQ(read.inline_length, work.inline_length);
    if (work.inline_length == 0) return;
    EXPECT_EQ(std::memcmp(inline_.data(), work.inline_data, work.inline_length), 0);
  }

  QueueOwner owner_{{8, 4}, 0x12'3456};
  EntryReader reader_{owner_.queues.send};
  Entry entry_{};
  std::array<std::byte, kMostInline> inline_{};
};

TEST_F(ForeignEntryTest, EachKindIsReadWithoutWhatIsNotSet) {
  const wire::LocalBuffer buffers[] = {{0x1122'3344'5566'7788, 100, 7}, {0x99, 0x7fff'ffff, 8}};
  const auto data = support::random_bytes(28, 1);
  for (int lap = 0; lap < 10; ++lap) {
    wire::SendWork work;
    work.flags = wire::kSignaled;
    expect_read(work);
    work.buffers = buffers;
    for (const Opcode opcode :
         {Opcode::dump, Opcode::send, Opcode::rdma_write, Opcode::rdma_read}) {
      work.opcode = opcode;
      if (wire::has_remote(opcode)) work.remote = {0xffee'ddcc'bbaa'0099, 0x77};
      for (work.buffer_count = 1; work.buffer_count <= 2; ++work.buffer_count) expect_read(work);
    }
    work.buffer_count = 1;
    work.compare_add = 0x0102'0304'0506'0708;
    work.opcode = Opcode::fetch_add;
    expect_read(work);
    work.opcode = Opcode::compare_swap;
    work.swap = 0x1112'1314'1516'1718;
    expect_read(work);
    wire::SendWork inlined;
    inlined.opcode = Opcode::rdma_write;
    inlined.remote = work.remote;
    inlined.inline_data = data.data();
    for (const std::uint32_t length : {1U, 2U, 4U, 8U, 12U, 13U, 28U}) {
      inlined.inline_length = length;
      expect_read(inlined);
    }
    inlined.opcode = Opcode::rdma_write_with_imm;
    inlined.immediate = 0xdead'beef;
    expect_read(inlined);
    wire::CompletionQueue other = owner_.queues.send.completions;
    other.number = 0x12'3456;
    expect_read(wire::wait_for_completion(other, 0x65'4321));
    expect_read(wire::wait_for_time(0x1122'3344'5566'7788));
  }
}

/// One of several threads that share a queue may stop before it rings, while the others continue.
TEST_F(ForeignEntryTest, ADoorbellWithoutARecordMayBeLateByMoreThanTheRing) {
  constexpr std::uint64_t kPosted = 40;
  wire::SendQueue& queue = owner_.queues.send;
  queue.has_record = false;
  EntryReader reader(queue);
  for (std::uint64_t end = 1; end <= kPosted; ++end) {
    ASSERT_EQ(owner_.post({}), wire::Posted::done);
    wire::ring_doorbell(queue.doorbell, wire::doorbell_of(queue, end));
    ASSERT_TRUE(reader.look());
    ASSERT_TRUE(reader.read(entry_, inline_.data())) << reader.fault();
    reader.pass(entry_);
    reader.retire(end);
    owner_.sent.completed = end;
  }
  for (const std::uint32_t late : {1U, 8U, 9U, 39U}) {
    wire::ring_doorbell(queue.doorbell, wire::doorbell_of(queue, kPosted - late));
    ASSERT_TRUE(reader.look());
    EXPECT_EQ(reader.fault(), "") << late << " blocks late";
    EXPECT_FALSE(reader.has_entry());
  }
  wire::ring_doorbell(queue.doorbell, wire::doorbell_of(queue, kPosted + 9));
  ASSERT_TRUE(reader.look());
  EXPECT_EQ(reader.fault(), "the doorbell is beyond the ring");
}

}  // namespace
}  // namespace offload::rdma
