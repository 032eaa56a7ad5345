#include "softcard/card/card.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "tests/rdma/model/card_fixture.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/thrown.hpp"

/// Tests of queues to which entries are posted without a library, and of the model of a card, which
/// carries them out.
namespace offload::rdma::model::test {
namespace {

using rdma::CqeKind;
using rdma::LocalBuffer;
using rdma::Opcode;
using rdma::Posted;
using rdma::SendWork;
using rdma::Syndrome;

SendWork work_of(Opcode opcode, const LocalBuffer* buffers, std::uint32_t count,
                 rdma::RemotePointer remote = {}) {
  SendWork work;
  work.opcode = opcode;
  work.flags = rdma::kSignaled;
  work.buffers = buffers;
  work.buffer_count = count;
  work.remote = remote;
  return work;
}

void fill(Memory& memory, std::uint32_t seed) {
  const auto bytes = support::random_bytes(memory.bytes().size(), seed);
  std::copy(bytes.begin(), bytes.end(), memory.bytes().begin());
}

bool equal(std::span<const std::byte> one, std::span<const std::byte> other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end());
}

TEST_F(CardTest, AWriteIsThereWhenItIsCompleted) {
  fill(here_, 1);
  const LocalBuffer buffers[] = {here_.local(0, 100), here_.local(1000, 1), here_.local(7, 300)};
  go(work_of(Opcode::rdma_write, buffers, 3, there_.remote(50)));
  const auto completion = one_.poll();
  ASSERT_TRUE(completion.has_value());
  EXPECT_EQ(completion->kind, CqeKind::request);
  EXPECT_EQ(completion->queue, one_.send.number);
  const auto got = there_.bytes().subspan(50);
  EXPECT_TRUE(equal(got.first(100), here_.bytes().first(100)));
  EXPECT_EQ(got[100], here_.bytes()[1000]);
  EXPECT_TRUE(equal(got.subspan(101, 300), here_.bytes().subspan(7, 300)));
  EXPECT_EQ(one_.poll(), std::nullopt);
  EXPECT_EQ(other_.poll_receive(), std::nullopt);
}

TEST_F(CardTest, InlineDataNeedsNoMemoryOfItsOwn) {
  const auto data = support::random_bytes(200, 3);
  for (const std::uint32_t length : {1U, 12U, 13U, 28U, 29U, 200U}) {
    SendWork work = work_of(Opcode::rdma_write, nullptr, 0, there_.remote(8));
    work.inline_data = data.data();
    work.inline_length = length;
    go(work);
    ASSERT_TRUE(one_.poll().has_value());
    EXPECT_TRUE(equal(there_.bytes().subspan(8, length), std::span(data).first(length)));
  }
}

TEST_F(CardTest, AReadComesBackIntoSeveralBuffers) {
  fill(there_, 2);
  const LocalBuffer buffers[] = {here_.local(0, 10), here_.local(100, 0), here_.local(64, 500)};
  go(work_of(Opcode::rdma_read, buffers, 3, there_.remote(3)));
  EXPECT_EQ(one_.poll().value().byte_count, 510U);
  EXPECT_TRUE(equal(here_.bytes().first(10), there_.bytes().subspan(3, 10)));
  EXPECT_TRUE(equal(here_.bytes().subspan(64, 500), there_.bytes().subspan(13, 500)));
}

TEST_F(CardTest, AtomicsReturnWhatWasThere) {
  there_.word(2) = 40;
  const LocalBuffer result = here_.local(0, 8);
  SendWork add = work_of(Opcode::fetch_add, &result, 1, there_.remote(16));
  add.compare_add = 2;
  go(add);
  ASSERT_TRUE(one_.poll().has_value());
  EXPECT_EQ(here_.word(0), 40U);
  EXPECT_EQ(there_.word(2), 42U);
  SendWork swap = work_of(Opcode::compare_swap, &result, 1, there_.remote(16));
  swap.compare_add = 42;
  swap.swap = 7;
  for (const std::uint64_t before : {42U, 7U}) {  // the second finds another
    go(swap);
    ASSERT_TRUE(one_.poll().has_value());
    EXPECT_EQ(here_.word(0), before);
    EXPECT_EQ(there_.word(2), 7U);
  }
}

TEST_F(CardTest, SendsUseReceivesInTheirOrder) {
  fill(here_, 4);
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_EQ(other_.post_receive(there_.local(100 * i, 100)), Posted::done);
  }
  for (std::uint32_t i = 0; i < 3; ++i) {
    const LocalBuffer buffer = here_.local(i, 40 + i);
    SendWork work = work_of(i == 1 ? Opcode::send_with_imm : Opcode::send, &buffer, 1);
    if (i == 1) work.immediate = 0x1234'5678;
    go(work);
    ASSERT_TRUE(one_.poll().has_value());
    const auto came = other_.poll_receive();
    ASSERT_TRUE(came.has_value());
    EXPECT_EQ(came->kind, i == 1 ? CqeKind::received_send_with_imm : CqeKind::received_send);
    EXPECT_EQ(came->immediate, i == 1 ? 0x1234'5678U : 0U);
    EXPECT_EQ(came->byte_count, 40 + i);
    EXPECT_EQ(came->counter, i);
    EXPECT_TRUE(equal(there_.bytes().subspan(100 * i, 40 + i), here_.bytes().subspan(i, 40 + i)));
  }
}

TEST_F(CardTest, AWriteWithAnImmediateIsSeenByTheReceiver) {
  fill(here_, 5);
  ASSERT_EQ(other_.post_receive({}), Posted::done);
  const LocalBuffer buffer = here_.local(0, 64);
  SendWork work = work_of(Opcode::rdma_write_with_imm, &buffer, 1, there_.remote(128));
  work.immediate = 99;
  go(work);
  const auto came = other_.poll_receive();
  ASSERT_TRUE(came.has_value());
  EXPECT_EQ(came->kind, CqeKind::received_write_with_imm);
  EXPECT_EQ(came->immediate, 99U);
  EXPECT_EQ(came->byte_count, 64U);
  EXPECT_TRUE(equal(there_.bytes().subspan(128, 64), here_.bytes().first(64)));
}

TEST_F(CardTest, ASendWaitsForAReceive) {
  const LocalBuffer buffer = here_.local(0, 8);
  go(work_of(Opcode::send, &buffer, 1));
  EXPECT_EQ(one_.poll(), std::nullopt);
  ASSERT_EQ(other_.post_receive(there_.local(0, 8)), Posted::done);
  card_.progress();
  EXPECT_TRUE(one_.poll().has_value());
  EXPECT_TRUE(other_.poll_receive().has_value());
}

TEST_F(CardTest, ASignaledEntryCompletesThoseBeforeIt) {
  const LocalBuffer buffer = here_.local(0, 8);
  for (int i = 0; i < 1000; ++i) {
    SendWork work = work_of(Opcode::rdma_write, &buffer, 1, there_.remote());
    work.flags = i % 5 == 4 ? rdma::kSignaled : 0;
    ASSERT_EQ(one_.post(work), Posted::done) << i;
    if (i % 5 != 4) continue;
    one_.publish();
    card_.progress();
    ASSERT_TRUE(one_.poll().has_value());
    ASSERT_EQ(one_.poll(), std::nullopt);
    ASSERT_EQ(one_.posted.completed, one_.posted.posted);
  }
}

TEST_F(CardTest, AFullRingTakesNoMore) {
  SendWork work;
  work.flags = rdma::kSignaled;
  for (int i = 0; i < 16; ++i) ASSERT_EQ(one_.post(work), Posted::done);
  EXPECT_EQ(one_.post(work), Posted::full);
  one_.publish();
  card_.progress();
  ASSERT_TRUE(one_.poll().has_value());
  EXPECT_EQ(one_.post(work), Posted::done);
  EXPECT_EQ(one_.post(work), Posted::full);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(other_.post_receive({}), Posted::done);
  EXPECT_EQ(other_.post_receive({}), Posted::full);
}

TEST_F(CardTest, LongEntriesOfWhichSomeAreUnderWay) {
  const auto data = support::random_bytes(200, 1);  // 4 blocks
  SendWork work = work_of(Opcode::rdma_write, nullptr, 0, there_.remote());
  work.inline_data = data.data();
  work.inline_length = 200;
  for (int i = 0; i < 100; ++i) {
    for (int together = 0; together < 4; ++together) {
      ASSERT_EQ(one_.post(work), Posted::done) << i;
    }
    one_.publish();
    card_.progress();
    for (int together = 0; together < 4; ++together) ASSERT_TRUE(one_.poll().has_value());
    ASSERT_EQ(one_.posted.completed, one_.posted.posted);
  }
}

TEST_F(CardTest, ACompletionOfNoEntryIsAnError) {
  ASSERT_EQ(one_.post({}), Posted::done);
  one_.publish();
  rdma::Completion forged{};
  forged.counter = 1;
  one_.send.completions.entries[0] = rdma::make_cqe(forged, 0, one_.send.completions.log2);
  EXPECT_EQ(one_.poll().value().syndrome, Syndrome::bad_response);
  EXPECT_EQ(one_.posted.completed, 0U);
}

TEST_F(CardTest, AnEntryThatIsTooLongIsNotWritten) {
  const std::vector<std::byte> data(1000);
  SendWork work = work_of(Opcode::rdma_write, nullptr, 0);
  work.inline_data = data.data();
  work.inline_length = 61 * 16 - 3;  // with its header, the most is 61 segments
  EXPECT_EQ(one_.post(work), Posted::invalid);
  work.inline_length = 61 * 16 - 4;
  EXPECT_EQ(one_.post(work), Posted::done);
}

struct Refused {
  const char* name;
  Opcode opcode;
  std::uint32_t local_length;
  std::int32_t local_key;  ///< beside the right one
  std::uint32_t remote_offset;
  std::int32_t remote_key;
  Syndrome syndrome;
};

TEST_F(CardTest, WhatIsNotAllowedFailsAndFlushesTheRest) {
  const Refused all[] = {
      {"a wrong lkey", Opcode::rdma_write, 8, 1, 0, 0, Syndrome::local_protection},
      {"beyond the local memory", Opcode::rdma_write, 4097, 0, 0, 0, Syndrome::local_protection},
      {"a wrong rkey", Opcode::rdma_write, 8, 0, 0, 0x4000, Syndrome::remote_access},
      {"beyond the remote memory", Opcode::rdma_write, 8, 0, 4089, 0, Syndrome::remote_access},
      {"to be read there", Opcode::rdma_read, 8, 0, 4089, 0, Syndrome::remote_access},
      {"an atomic across words", Opcode::fetch_add, 8, 0, 4, 0, Syndrome::remote_invalid_request},
      {"an atomic's result in 4 bytes", Opcode::fetch_add, 4, 0, 0, 0, Syndrome::local_length},
  };
  for (const Refused& refused : all) {
    SCOPED_TRACE(refused.name);
    Card card;
    Owner one(card, 16, 8);
    Owner other(card, 16, 8);
    card.connect(one.send.number, other.send.number);
    Memory here(card, 4096, {});
    Memory there(card, 4096, kAll);
    LocalBuffer buffer = here.local(0, refused.local_length);
    buffer.lkey += static_cast<std::uint32_t>(refused.local_key);
    rdma::RemotePointer remote = there.remote(refused.remote_offset);
    remote.rkey += static_cast<std::uint32_t>(refused.remote_key);
    const auto before = support::copy_of(there.bytes());
    SendWork work = work_of(refused.opcode, &buffer, 1, remote);
    work.flags = 0;  // an error makes a completion nevertheless
    if (refused.syndrome != Syndrome::local_length) work.compare_add = 1;
    ASSERT_EQ(one.post(work), Posted::done);
    ASSERT_EQ(one.post({}), Posted::done);
    one.publish();
    card.progress();
    ASSERT_EQ(one.post({}), Posted::done);
    one.publish();
    card.progress();
    EXPECT_EQ(card.fault(), "");
    for (const Syndrome syndrome : {refused.syndrome, Syndrome::flushed, Syndrome::flushed}) {
      const auto completion = one.poll();
      ASSERT_TRUE(completion.has_value());
      EXPECT_EQ(completion->kind, CqeKind::request_error);
      EXPECT_EQ(completion->syndrome, syndrome);
    }
    EXPECT_TRUE(equal(there.bytes(), before));
  }
}

TEST_F(CardTest, RightsAreThoseThatWereGiven) {
  Memory readable(card_, 64, {.read = true});
  const LocalBuffer buffer = here_.local(0, 8);
  go(work_of(Opcode::rdma_read, &buffer, 1, readable.remote()));
  EXPECT_FALSE(one_.poll().value().is_error());
  go(work_of(Opcode::rdma_write, &buffer, 1, readable.remote()));
  EXPECT_EQ(one_.poll().value().syndrome, Syndrome::remote_access);
}

TEST_F(CardTest, AMessageThatIsLongerThanItsReceiveFailsAtBothEnds) {
  ASSERT_EQ(other_.post_receive(there_.local(0, 16)), Posted::done);
  const LocalBuffer buffer = here_.local(0, 17);
  go(work_of(Opcode::send, &buffer, 1));
  EXPECT_EQ(one_.poll().value().syndrome, Syndrome::remote_invalid_request);
  EXPECT_EQ(other_.poll_receive().value().syndrome, Syndrome::local_length);
}

// For a card a length of 0 is 2^31: post_receive() must not hand one over.
TEST_F(CardTest, AReceiveWithoutBytesTakesNoData) {
  ASSERT_EQ(other_.post_receive(there_.local(0, 0)), Posted::done);
  const LocalBuffer buffer = here_.local(0, 8);
  go(work_of(Opcode::send, &buffer, 1));
  EXPECT_EQ(one_.poll().value().syndrome, Syndrome::remote_invalid_request);
  EXPECT_EQ(other_.poll_receive().value().syndrome, Syndrome::local_length);
}

TEST_F(CardTest, WithoutAReceiveItCanFail) {
  card_.set_fail_without_receive(true);
  const LocalBuffer buffer = here_.local(0, 8);
  go(work_of(Opcode::send, &buffer, 1));
  EXPECT_EQ(one_.poll().value().syndrome, Syndrome::receiver_not_ready);
}

TEST_F(CardTest, ADoorbellBeforeItsRecordIsFound) {
  ASSERT_EQ(one_.post({}), Posted::done);
  rdma::ring_doorbell(one_.send.doorbell, one_.send.ring.at(0, 0));
  card_.progress();
  expected_fault_ = "queue 64: the doorbell was rung before the record was written";
}

/// A change of an entry before it is published, and the fault that the card reports.
struct Broken {
  std::uint32_t word;
  std::uint32_t flipped;
  const char* fault;
};

TEST_F(CardTest, AnEntryThatBreaksTheFormatIsNamed) {
  const Broken all[] = {{0, 0x0000'0100, "its index is wrong"},
                        {0, 0x0100'0000, "its operation is unknown"},
                        {0, 0x0000'0004, "its operation is unknown"},
                        {1, 0x0000'0100, "it names another queue"},
                        {1, 0x0000'0080, "its length is invalid"},
                        {1, 0x0000'0003, "its length is invalid"},
                        {1, 0x0000'0020, "it is not completely published"},
                        {2, 0x0100'0000, "a reserved field is not 0"},
                        {3, 0x0000'0001, "its operation has no immediate"},
                        {7, 0x0000'0001, "a reserved field is not 0"}};
  for (const Broken& broken : all) {
    Card card;
    Owner one(card, 16, 8);
    const LocalBuffer buffer = here_.local(0, 8);
    ASSERT_EQ(one.post(work_of(Opcode::rdma_write, &buffer, 1, there_.remote())), Posted::done);
    const rdma::Segment good = one.send.ring.at(0, 0);
    rdma::Segment& segment = one.send.ring.at(0, broken.word / 4);
    segment.words[broken.word % 4] ^= rdma::big_endian(broken.flipped);
    rdma::store_record(one.send.record, 1);
    rdma::ring_doorbell(one.send.doorbell, good);
    card.progress();
    EXPECT_EQ(card.fault(), std::string("queue 64: entry 0: ") + broken.fault);
  }
}

TEST_F(CardTest, QueuesOfImpossibleSizesAreRefused) {
  rdma::SendQueue send = one_.send;
  send.ring.blocks = 12;
  EXPECT_EQ(support::thrown_by([&] {
              card_.add({send, one_.receive});
            }).code(),
            core::ErrorCode::invalid_value);
  send.ring.blocks = 32;  // more than there are completions
  EXPECT_EQ(support::thrown_by([&] {
              card_.add({send, one_.receive});
            }).code(),
            core::ErrorCode::invalid_value);
}

// One thread posts and polls, another is the card: 2,000 writes over many laps, each of which is
// seen whole when it is completed.
TEST_F(CardTest, BesideAnOwnerOfAnotherThread) {
  std::atomic<bool> ends{false};
  std::thread card([&] {
    while (!ends.load(std::memory_order_relaxed)) {
      if (!card_.progress()) std::this_thread::yield();
    }
  });
  constexpr std::uint32_t kInFlight = 8;
  constexpr std::uint64_t kCount = 2000;
  std::uint64_t sent = 0;
  std::uint64_t done = 0;
  bool right = true;
  // The test runs as long as there are completions, however slowly the threads take turns.
  constexpr std::chrono::seconds kPatience(60);
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (done < kCount && std::chrono::steady_clock::now() < deadline) {
    for (; sent < kCount && sent - done < kInFlight; ++sent) {
      const auto place = static_cast<std::uint32_t>(sent % kInFlight);
      here_.word(place) = sent * 0x9e37'79b9'7f4a'7c15;
      const LocalBuffer buffer = here_.local(8 * place, 8);
      if (one_.post(work_of(Opcode::rdma_write, &buffer, 1, there_.remote(8 * place))) !=
          Posted::done) {
        break;
      }
    }
    one_.publish();
    while (const auto completion = one_.poll()) {
      right = right && !completion->is_error() &&
              there_.word(done % kInFlight) == done * 0x9e37'79b9'7f4a'7c15;
      ++done;
      deadline = std::chrono::steady_clock::now() + kPatience;
    }
    std::this_thread::yield();
  }
  ends = true;
  card.join();
  EXPECT_EQ(card_.fault(), "");
  EXPECT_EQ(done, kCount);
  EXPECT_TRUE(right);
}

}  // namespace
}  // namespace offload::rdma::model::test
