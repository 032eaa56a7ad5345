#include "rdma/queues/entry_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "rdma/queues/completion_writer.hpp"
#include "rdma/queues/queue_memory.hpp"
#include "tests/support/bytes.hpp"

namespace offload::rdma {
namespace {

namespace wire = kernels::rdma;
using wire::LocalBuffer;
using wire::Opcode;

class EntryReaderTest : public testing::Test {
 protected:
  static constexpr QueueSizes kSizes{32, 4};
  struct alignas(kQueueAlignment) Line {
    std::byte bytes[kQueueAlignment];
  };

  /// Posts, publishes, and reads the posted entry.
  void pass(const wire::SendWork& work) {
    ASSERT_EQ(wire::post_send(queues_.send, state_, work), wire::Posted::done);
    wire::publish(queues_.send, state_);
    ASSERT_TRUE(reader_.look());
    ASSERT_TRUE(reader_.read(entry_, inline_.data())) << reader_.fault();
    reader_.pass(entry_);
    EXPECT_FALSE(reader_.has_entry());
    reader_.retire(reader_.next());
    state_.completed = state_.posted;
  }
  void ring(std::uint32_t record, std::uint32_t entry) {
    wire::store_record(queues_.send.record, record);
    wire::ring_doorbell(queues_.send.doorbell, wire::control_segment(entry, kNumber, 1, {}));
  }

  static constexpr std::uint32_t kNumber = 0x1234;
  std::vector<Line> memory_{queue_memory_bytes(kSizes) / sizeof(Line)};
  QueuePairMemory queues_ =
      lay_out_queues(std::as_writable_bytes(std::span(memory_)), kSizes, kNumber);
  wire::SendState state_;
  EntryReader reader_{queues_.send, EntryFormat::rdma, Reading::strict};
  ReceiveReader receives_{queues_.receive};
  Entry entry_;
  std::array<std::byte, kMostInline + 1> inline_{};
};

TEST_F(EntryReaderTest, WhatWasPostedIsRead) {
  const LocalBuffer buffers[] = {{0x1122334455667788, 100, 7}, {0x99, 0x7fff'ffff, 8}};
  wire::SendWork work;
  work.opcode = Opcode::compare_swap;
  work.flags = wire::kSignaled | wire::kFence;
  work.remote = {0xffee'ddcc'bbaa'0099, 0x77};
  work.compare_add = 0x0102'0304'0506'0708;
  work.swap = 0x1112'1314'1516'1718;
  work.buffers = buffers;
  work.buffer_count = 2;
  pass(work);
  EXPECT_EQ(entry_.position, 0U);
  EXPECT_EQ(entry_.segments, 5U);
  EXPECT_EQ(entry_.end(), 2U);
  EXPECT_EQ(entry_.work.opcode, work.opcode);
  EXPECT_EQ(entry_.work.flags, work.flags);
  EXPECT_EQ(entry_.work.remote.address, work.remote.address);
  EXPECT_EQ(entry_.work.remote.rkey, work.remote.rkey);
  EXPECT_EQ(entry_.work.compare_add, work.compare_add);
  EXPECT_EQ(entry_.work.swap, work.swap);
  ASSERT_EQ(entry_.work.buffer_count, 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(entry_.buffers[i].address, buffers[i].address);
    EXPECT_EQ(entry_.buffers[i].length, buffers[i].length);
    EXPECT_EQ(entry_.buffers[i].lkey, buffers[i].lkey);
  }
  work = {};
  work.opcode = Opcode::send_with_imm;
  work.immediate = 0xdeadbeef;
  pass(work);
  EXPECT_EQ(entry_.position, 2U);
  EXPECT_EQ(entry_.work.immediate, 0xdeadbeef);
  EXPECT_FALSE(entry_.is_inline());
}

// Tests each length at each place of the ring, over its end too; and no byte more is written.
TEST_F(EntryReaderTest, InlineDataOfEachLength) {
  const auto data = support::random_bytes(kMostInline, 1);
  for (std::uint32_t length = 1; length <= kMostInline; ++length) {
    wire::SendWork work;
    work.opcode = Opcode::send;
    work.inline_data = data.data();
    work.inline_length = length;
    std::fill(inline_.begin(), inline_.end(), std::byte{0x5a});
    pass(work);
    ASSERT_TRUE(entry_.is_inline());
    ASSERT_EQ(entry_.work.inline_length, length);
    ASSERT_TRUE(std::equal(inline_.begin(), inline_.begin() + length,
                           reinterpret_cast<const std::byte*>(data.data())));
    ASSERT_EQ(inline_[length], std::byte{0x5a});
  }
}

TEST_F(EntryReaderTest, ARecordBeyondTheRingIsAFault) {
  for (std::uint32_t i = 0; i < 20; ++i) pass({});
  reader_.retire(4);
  ring(4 + 32 + 1, 4 + 32);
  EXPECT_TRUE(reader_.look());
  EXPECT_EQ(reader_.fault(), "the record is beyond the ring");
  EXPECT_FALSE(reader_.has_entry());
  ring(20, 19);
  EXPECT_FALSE(reader_.look()) << "nothing is read after a fault";
}

// The owner continued between the two loads: the doorbell of known blocks may come later.
TEST_F(EntryReaderTest, ADoorbellThatIsLateIsNone) {
  ring(9, 2);
  EXPECT_TRUE(reader_.look());
  for (std::uint32_t i = 3; i < 9; ++i) {
    ring(9, i);
    EXPECT_TRUE(reader_.look());
  }
  ring(9, 9);
  EXPECT_TRUE(reader_.look());
  EXPECT_EQ(reader_.fault(), "the doorbell was rung before the record was written");
}

TEST_F(EntryReaderTest, ALengthOfNoneAndInlineDataThatIsTooLong) {
  const LocalBuffer buffer{1, 4, 2};
  for (const std::uint32_t length : {0U, 0x8000'000dU, 0x8000'1000U, 0xffff'ffffU}) {
    EntryReader reader(queues_.send);
    wire::SendState state;
    wire::SendWork work;
    work.opcode = Opcode::send;
    work.buffers = &buffer;
    work.buffer_count = 1;
    ASSERT_EQ(wire::post_send(queues_.send, state, work), wire::Posted::done);
    queues_.send.ring.at(0, 1).words[0] = wire::big_endian(length);
    wire::publish(queues_.send, state);
    ASSERT_TRUE(reader.look());
    EXPECT_FALSE(reader.read(entry_, inline_.data()));
    EXPECT_EQ(reader.fault(), length == 0 ? "entry 0: a buffer has length 0"
                                          : "entry 0: its inline data is invalid");
  }
}

TEST_F(EntryReaderTest, InlineDataFillsTheSegmentsOfItsEntry) {
  const LocalBuffer buffers[] = {{1, 4, 2}, {1, 4, 2}};
  for (const std::uint32_t length : {0x8000'000cU, 0x8000'000dU}) {
    EntryReader reader(queues_.send);
    wire::SendState state;
    wire::SendWork work;
    work.opcode = Opcode::send;
    work.buffers = buffers;
    work.buffer_count = 2;
    ASSERT_EQ(wire::post_send(queues_.send, state, work), wire::Posted::done);
    queues_.send.ring.at(0, 1).words[0] = wire::big_endian(length);
    wire::publish(queues_.send, state);
    ASSERT_TRUE(reader.look());
    EXPECT_EQ(reader.read(entry_, inline_.data()), length == 0x8000'000dU) << length;
  }
}

/// Readings of one entry that a test has changed.
class ChangedEntryTest : public EntryReaderTest {
 protected:
  /// Writes `work`, has a word of it changed, and lets a reader read it; returns the fault.
  std::string read(const wire::SendWork& work, Reading reading, std::uint32_t word,
                   std::uint32_t flipped, EntryFormat format = EntryFormat::rdma) {
    EntryReader reader(queues_.send, format, reading);
    wire::SendState state;
    EXPECT_EQ(wire::post_send(queues_.send, state, work), wire::Posted::done);
    queues_.send.ring.at(0, word / 4).words[word % 4] ^= wire::big_endian(flipped);
    wire::publish(queues_.send, state);
    EXPECT_TRUE(reader.look());
    reader.read(entry_, inline_.data());
    return reader.fault();
  }
};

// A card ignores these fields, and NVIDIA's device functions leave them unset.
TEST_F(ChangedEntryTest, WhatACardDoesNotLookAtMayHoldAnything) {
  const LocalBuffer buffer{0x1122'3344'5566'7788, 100, 7};
  wire::SendWork work;
  work.opcode = Opcode::rdma_write;
  work.flags = wire::kSignaled | wire::kSolicited;
  work.remote = {0x99, 0x77};
  work.buffers = &buffer;
  work.buffer_count = 1;
  const std::pair<std::uint32_t, std::uint32_t> all[] = {{2, 0xa5a5'a500}, {3, ~0U}, {7, ~0U}};
  for (const auto& [word, flipped] : all) {
    EXPECT_NE(read(work, Reading::strict, word, flipped), "") << word;
    EXPECT_EQ(read(work, Reading::as_card, word, flipped), "") << word;
    EXPECT_EQ(entry_.work.flags, work.flags);
    EXPECT_EQ(entry_.work.immediate, 0U);
    EXPECT_EQ(entry_.work.remote.address, 0x99U);
    EXPECT_EQ(entry_.work.remote.rkey, 0x77U);
    EXPECT_EQ(entry_.buffers[0].address, buffer.address);
  }
  wire::SendWork waits = wire::wait_for_completion(queues_.receive.completions, 5);
  for (const std::uint32_t word : {4U, 5U}) {
    EXPECT_EQ(read(waits, Reading::strict, word, 1), "entry 0: a reserved field is not 0");
    EXPECT_EQ(read(waits, Reading::as_card, word, 1), "");
    EXPECT_EQ(entry_.work.awaited.value, 5U);
  }
}

TEST_F(ChangedEntryTest, ModesOfCompletionsAndFencesAreThoseOfACard) {
  constexpr std::uint32_t kOfCompletions = 4;
  constexpr std::uint32_t kOfFences = 8;
  const std::uint8_t completions[kOfCompletions] = {0, 0, wire::kSignaled, wire::kSignaled};
  const std::uint8_t fences[] = {0, wire::kSmallFence, wire::kFence, wire::kFence, wire::kFence};
  for (std::uint32_t fence = 0; fence < kOfFences; ++fence) {
    for (std::uint32_t completion = 0; completion < kOfCompletions; ++completion) {
      const std::uint32_t flags = fence << 5 | completion << 2;
      const bool is_written = (fence == 0 || fence == 1 || fence == 4) && completion % 2 == 0;
      EXPECT_EQ(read({}, Reading::strict, 2, flags).empty(), is_written) << flags;
      EXPECT_EQ(read({}, Reading::as_card, 2, flags).empty(), fence < std::size(fences)) << flags;
      if (fence >= std::size(fences)) continue;
      EXPECT_EQ(entry_.work.flags, fences[fence] | completions[completion]) << flags;
    }
  }
  for (const std::uint32_t unused : {1U, 1U << 4}) {
    EXPECT_NE(read({}, Reading::as_card, 2, unused), "");
  }
}

TEST_F(ChangedEntryTest, WhatItWaitsFor) {
  queues_.receive.completions.number = 0xab'cdef;
  for (const EntryFormat format : {EntryFormat::rdma, EntryFormat::raw_packet}) {
    const auto of = wire::wait_for_completion(queues_.receive.completions, 0x1'2345'6789);
    EXPECT_EQ(read(of, Reading::strict, 0, 0, format), "");
    EXPECT_EQ(entry_.segments, 2U);
    EXPECT_FALSE(entry_.work.awaited.is_time);
    EXPECT_EQ(entry_.work.awaited.value, 0x45'6789U) << "24 bits of it";
    EXPECT_EQ(entry_.work.awaited.mask, 0xff'ffffU);
    EXPECT_EQ(entry_.work.awaited.completions, 0xab'cdefU);

    wire::SendWork until = wire::wait_for_time(0x1122'3344'5566'7788);
    until.awaited.mask = 0xffff'ffff'ffff;
    EXPECT_EQ(read(until, Reading::strict, 0, 0, format), "");
    EXPECT_EQ(entry_.segments, 3U);
    EXPECT_TRUE(entry_.work.awaited.is_time);
    EXPECT_EQ(entry_.work.awaited.value, until.awaited.value);
    EXPECT_EQ(entry_.work.awaited.mask, until.awaited.mask);
    EXPECT_EQ(entry_.work.buffer_count, 0U);
  }
}

TEST_F(ChangedEntryTest, AWaitThatCannotBe) {
  const auto of = wire::wait_for_completion(queues_.receive.completions, 1);
  const auto until = wire::wait_for_time(1);
  struct Case {
    const wire::SendWork& work;
    std::uint32_t word;
    std::uint32_t flipped;
    const char* fault;
  };
  const Case cases[] = {{of, 0, 0x0100'0000, "its operation is unknown"},
                        {until, 0, 0x0400'0000, "its operation is unknown"},
                        {of, 0, 0x0200'0000, "its length is invalid"},
                        {until, 0, 0x0200'0000, "its length is invalid"},
                        {of, 1, 0x3, "its length is invalid"},
                        {of, 1, 0x1, "its length is invalid"},
                        {until, 1, 0x7, "its length is invalid"},
                        {until, 4, 0x6, "its condition is unknown"},
                        {until, 10, 0x0001'0000, "its condition is unknown"},
                        {until, 11, 0x0000'0001, "its condition is unknown"}};
  for (const Case& made : cases) {
    for (const Reading reading : {Reading::as_card, Reading::strict}) {
      EXPECT_EQ(read(made.work, reading, made.word, made.flipped),
                std::string("entry 0: ") + made.fault);
    }
  }
  wire::SendWork never = until;
  never.awaited.mask = 0;
  EXPECT_EQ(read(never, Reading::as_card, 0, 0), "entry 0: its condition is unknown");
}

TEST_F(ChangedEntryTest, AnOperationWithoutItsOperandsOrWithInlineDataThatItCannotHave) {
  const LocalBuffer buffer{1, 12, 2};
  wire::SendWork work;
  work.buffers = &buffer;
  struct Case {
    Opcode opcode;
    std::uint32_t word;  ///< with the length of the buffer
  };
  for (const Case& made : {Case{Opcode::rdma_read, 8}, Case{Opcode::compare_swap, 12},
                           Case{Opcode::fetch_add, 12}, Case{kDump, 4}}) {
    work.opcode = made.opcode;
    work.buffer_count = 1;
    EXPECT_EQ(read(work, Reading::as_card, made.word, 0x8000'0000),
              "entry 0: its inline data is invalid");
    if (!wire::is_atomic(made.opcode)) continue;
    work.buffer_count = 0;
    EXPECT_EQ(read(work, Reading::as_card, 1, 3 ^ 2), "entry 0: its length is invalid");
  }
}

TEST_F(ChangedEntryTest, AWaitForATimeHasThreeReservedWords) {
  const auto until = wire::wait_for_time(1);
  for (const std::uint32_t word : {5U, 6U, 7U}) {
    EXPECT_EQ(read(until, Reading::strict, word, 1), "entry 0: a reserved field is not 0") << word;
    EXPECT_EQ(read(until, Reading::as_card, word, 1), "") << word;
  }
}

TEST_F(EntryReaderTest, ADoorbellOfAnotherQueueIsAFault) {
  wire::store_record(queues_.send.record, 1);
  wire::ring_doorbell(queues_.send.doorbell, wire::control_segment(0, kNumber + 1, 1, {}));
  EXPECT_TRUE(reader_.look());
  EXPECT_EQ(reader_.fault(), "the doorbell names another queue");
  EXPECT_FALSE(reader_.has_entry());
}

/// Rings like NVIDIA's device functions: a doorbell with 24 bits of the position and no length, the
/// record, and the same doorbell again.
class DoorbellFirstTest : public EntryReaderTest {
 protected:
  void post(std::uint64_t end) {
    for (; state_.posted < end; state_.completed = state_.posted) {
      ASSERT_EQ(wire::post_send(queues_.send, state_, {}), wire::Posted::done);
    }
  }
  void ring_alone(std::uint64_t end) {
    const auto position = static_cast<std::uint32_t>(end & 0xff'ffffU);
    wire::ring_doorbell(queues_.send.doorbell,
                        {{wire::big_endian(position << 8), wire::big_endian(kNumber << 8), 0, 0}});
  }
  /// Reads all entries.
  std::uint64_t read_all(EntryReader& reader) {
    while (reader.has_entry() && reader.read(entry_, inline_.data())) reader.pass(entry_);
    reader.retire(reader.next());
    return reader.next();
  }
};

TEST_F(DoorbellFirstTest, ACardTakesWhatWasRungFor) {
  EntryReader reader(queues_.send);
  for (std::uint64_t end = 3; end < 0x3'0000; end += 3) {
    post(end);
    ring_alone(end);
    ASSERT_TRUE(reader.look());
    ASSERT_EQ(read_all(reader), end) << reader.fault();
    wire::store_record(queues_.send.record, static_cast<std::uint32_t>(end & 0xffffU));
    ring_alone(end);
    ASSERT_FALSE(reader.look()) << "the second says the same";
  }
  EXPECT_EQ(reader.fault(), "");
}

TEST_F(DoorbellFirstTest, ARecordThatIsFartherCountsToo) {
  EntryReader reader(queues_.send);
  post(9);
  wire::store_record(queues_.send.record, 9);
  ring_alone(4);
  EXPECT_TRUE(reader.look());
  EXPECT_EQ(read_all(reader), 9U);
  ring_alone(7);  // late
  EXPECT_TRUE(reader.look());
  EXPECT_FALSE(reader.has_entry());
  EXPECT_EQ(reader.fault(), "");
}

TEST_F(DoorbellFirstTest, ADoorbellBeyondTheRingIsAFault) {
  EntryReader reader(queues_.send);
  post(20);
  ring_alone(20);
  EXPECT_TRUE(reader.look());
  EXPECT_EQ(read_all(reader), 20U);
  wire::store_record(queues_.send.record, 20);
  ring_alone(20 + 32);
  EXPECT_TRUE(reader.look());
  EXPECT_EQ(reader.fault(), "");
  ring_alone(20 + 32 + 1);
  EXPECT_TRUE(reader.look());
  EXPECT_EQ(reader.fault(), "the doorbell is beyond the ring");
  EXPECT_FALSE(reader.has_entry());
}

TEST_F(EntryReaderTest, ReceivesAreReadInTheirOrderAndNoMoreThanThereAre) {
  wire::ReceiveState state;
  CompletionWriter writer(queues_.receive.completions);
  for (std::uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(receives_.look(), 0U);
    ASSERT_EQ(wire::post_receive(queues_.receive, state, {i, i + 1, i + 2}), wire::Posted::done);
    wire::publish(queues_.receive, state);
    ASSERT_EQ(receives_.look(), 1U);
    EXPECT_EQ(receives_.next(), i);
    const LocalBuffer buffer = receives_.read();
    EXPECT_EQ(buffer.address, i);
    EXPECT_EQ(buffer.length, i + 1);
    EXPECT_EQ(buffer.lkey, i + 2);
    wire::Completion completion{};
    completion.kind = wire::CqeKind::received_send;
    completion.byte_count = i;
    writer.write(completion);
    receives_.retire(1);
    wire::Completion polled{};
    ASSERT_TRUE(wire::poll_receive(queues_.receive, state, polled));
    EXPECT_EQ(polled.byte_count, i);
  }
  wire::store_record(queues_.receive.record, 20 + 5);
  EXPECT_EQ(receives_.look(), 0U);
  EXPECT_EQ(receives_.fault(), "the record of receives is beyond the ring");
}

// A receive that was read keeps its entry until it is completed.
TEST_F(EntryReaderTest, AReceiveInUseIsNotPostedOver) {
  wire::store_record(queues_.receive.record, 4);
  ASSERT_EQ(receives_.look(), 4U);
  for (int i = 0; i < 3; ++i) (void)receives_.read();
  receives_.retire(1);
  wire::store_record(queues_.receive.record, 5);
  EXPECT_EQ(receives_.look(), 2U);
  wire::store_record(queues_.receive.record, 6);
  EXPECT_EQ(receives_.look(), 0U);
  EXPECT_TRUE(receives_.has_fault());
  wire::store_record(queues_.receive.record, 5);
  EXPECT_EQ(receives_.look(), 0U) << "nothing is read after a fault";
}

}  // namespace
}  // namespace offload::rdma
