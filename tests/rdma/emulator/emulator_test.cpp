#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

#include "rdma/emulator/queue_emulator.hpp"
#include "tests/rdma/emulator/emulator_fixture.hpp"
#include "tests/support/bytes.hpp"

/// The work requests that an emulator makes from entries, on a device that works.
namespace offload::rdma {
namespace {

using wire::CqeKind;
using wire::LocalBuffer;
using wire::Opcode;
using wire::Posted;
using wire::Syndrome;

// NVIDIA's device functions leave some fields unset, use other modes, and ring a doorbell before
// they write its record.
TEST_F(EmulatorTest, EntriesAreReadAsACardReadsThem) {
  const LocalBuffer buffer{0x1000, 8, 7};
  wire::SendWork work = work_of(Opcode::rdma_write, 0);
  work.remote = {0x2000, 9};
  work.buffers = &buffer;
  work.buffer_count = 1;
  ASSERT_EQ(owner_.post(work), Posted::done);
  owner_.sent.published = owner_.sent.posted;
  wire::Segment& control = owner_.queues.send.ring.at(0, 0);
  control.words[2] = wire::big_endian(0xa5a5'a500U | 3U << 5 | 3U << 2);
  control.words[3] = 0xa5a5'a5a5U;
  owner_.queues.send.ring.at(0, 1).words[3] = 0xa5a5'a5a5U;
  wire::ring_doorbell(owner_.queues.send.doorbell, control);
  turn();
  wire::store_record(owner_.queues.send.record, 1);
  turn();
  ASSERT_EQ(native().sends.size(), 1U);
  const test::Posted& posted = native().sends.front();
  EXPECT_EQ(posted.send.opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(posted.send.send_flags, unsigned{IBV_SEND_SIGNALED | IBV_SEND_FENCE});
  EXPECT_EQ(posted.send.wr.rdma.remote_addr, 0x2000U);
  finish();
  expect(Syndrome::none, 0);
}

TEST_F(EmulatorTest, EachOperationBecomesItsWorkRequest) {
  const std::pair<Opcode, ibv_wr_opcode> all[] = {
      {Opcode::rdma_write, IBV_WR_RDMA_WRITE},
      {Opcode::rdma_write_with_imm, IBV_WR_RDMA_WRITE_WITH_IMM},
      {Opcode::send, IBV_WR_SEND},
      {Opcode::send_with_imm, IBV_WR_SEND_WITH_IMM},
      {Opcode::rdma_read, IBV_WR_RDMA_READ}};
  const LocalBuffer buffers[] = {{0x1111'2222'3333'4444, 100, 7}, {0x99, 0x1000'0000, 8}};
  for (const auto& [opcode, native_opcode] : all) {
    wire::SendWork work = work_of(opcode);
    work.remote = {0xffee'ddcc'bbaa'0099, 0x77};
    work.buffers = buffers;
    work.buffer_count = 2;
    const bool has_immediate =
        opcode == Opcode::rdma_write_with_imm || opcode == Opcode::send_with_imm;
    if (has_immediate) work.immediate = 0xdead'beef;
    go(work);
    ASSERT_EQ(native().sends.size(), 1U);
    const test::Posted& posted = native().sends.front();
    EXPECT_EQ(posted.send.opcode, native_opcode);
    EXPECT_EQ(posted.send.send_flags, unsigned{IBV_SEND_SIGNALED});
    if (has_immediate) {
      EXPECT_EQ(posted.send.imm_data, 0xdead'beef);
    }
    if (wire::has_remote(opcode)) {
      EXPECT_EQ(posted.send.wr.rdma.remote_addr, work.remote.address);
      EXPECT_EQ(posted.send.wr.rdma.rkey, work.remote.rkey);
    }
    ASSERT_EQ(posted.pieces.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(posted.pieces[i].addr, buffers[i].address);
      EXPECT_EQ(posted.pieces[i].length, buffers[i].length);
      EXPECT_EQ(posted.pieces[i].lkey, buffers[i].lkey);
    }
    EXPECT_FALSE(owner_.poll());
    finish();
    const auto completion = owner_.poll();
    ASSERT_TRUE(completion);
    EXPECT_FALSE(completion->is_error());
    EXPECT_EQ(completion->byte_count, wire::has_remote(opcode) ? 0x1000'0064U : 0U);
  }
}

TEST_F(EmulatorTest, AtomicsHaveTheirOperands) {
  const LocalBuffer buffer{0x1000, 8, 7};
  wire::SendWork work = work_of(Opcode::compare_swap);
  work.remote = {0x2000, 9};
  work.compare_add = 0x0102'0304'0506'0708;
  work.swap = 0x1112'1314'1516'1718;
  work.buffers = &buffer;
  work.buffer_count = 1;
  go(work);
  work.opcode = Opcode::fetch_add;
  go(work);
  ASSERT_EQ(native().sends.size(), 2U);
  const auto& swap = native().sends[0].send;
  EXPECT_EQ(swap.opcode, IBV_WR_ATOMIC_CMP_AND_SWP);
  EXPECT_EQ(swap.wr.atomic.remote_addr, 0x2000U);
  EXPECT_EQ(swap.wr.atomic.rkey, 9U);
  EXPECT_EQ(swap.wr.atomic.compare_add, work.compare_add);
  EXPECT_EQ(swap.wr.atomic.swap, work.swap);
  const auto& add = native().sends[1].send;
  EXPECT_EQ(add.opcode, IBV_WR_ATOMIC_FETCH_AND_ADD);
  EXPECT_EQ(add.wr.atomic.compare_add, work.compare_add);
}

TEST_F(EmulatorTest, FlagsAreThoseThatVerbsHave) {
  go(work_of(Opcode::send, wire::kSignaled | wire::kSolicited));
  go(work_of(Opcode::send, wire::kSignaled | wire::kSmallFence));
  go(work_of(Opcode::send, wire::kSignaled | wire::kFence));
  ASSERT_EQ(native().sends.size(), 3U);
  EXPECT_EQ(native().sends[0].send.send_flags,
            unsigned{IBV_SEND_SIGNALED} | unsigned{IBV_SEND_SOLICITED});
  const unsigned fenced = unsigned{IBV_SEND_SIGNALED} | unsigned{IBV_SEND_FENCE};
  EXPECT_EQ(native().sends[1].send.send_flags, fenced);
  EXPECT_EQ(native().sends[2].send.send_flags, fenced);
}

TEST_F(EmulatorTest, ARunHasOneDoorbellAndItsLastIsSignaled) {
  ASSERT_EQ(owner_.post(work_of(Opcode::send, 0)), Posted::done);
  ASSERT_EQ(owner_.post(work_of(Opcode::send)), Posted::done);
  ASSERT_EQ(owner_.post(work_of(Opcode::send, 0)), Posted::done);
  owner_.publish();
  turn();
  EXPECT_EQ(test::fake().doorbells, 1);
  ASSERT_EQ(native().sends.size(), 3U);
  EXPECT_EQ(native().sends[0].send.send_flags, 0U);
  EXPECT_EQ(native().sends[1].send.send_flags, unsigned{IBV_SEND_SIGNALED});
  EXPECT_EQ(native().sends[2].send.send_flags, unsigned{IBV_SEND_SIGNALED});
  for (int i = 0; i < 3; ++i) finish();
  expect(Syndrome::none, 1);
  EXPECT_FALSE(owner_.poll()) << "the last was not signaled by its owner";
}

// Data that fits the device's inline data is posted inline, longer data lies in the emulator's
// memory.
TEST_F(EmulatorTest, InlineDataOfAnyLengthAtAnyPlace) {
  const auto data = support::random_bytes(kMostInline, 1);
  for (std::uint32_t length = 1; length <= kMostInline; length += 7) {
    wire::SendWork work = work_of(Opcode::send);
    work.inline_data = data.data();
    work.inline_length = length;
    go(work);
    ASSERT_EQ(native().sends.size(), 1U);
    const test::Posted& posted = native().sends.front();
    ASSERT_EQ(posted.pieces.size(), 1U);
    ASSERT_EQ(posted.pieces[0].length, length);
    ASSERT_EQ((posted.send.send_flags & IBV_SEND_INLINE) != 0, length <= 64);
    ASSERT_EQ(posted.pieces[0].lkey, 11U);  // of the fake's regions
    ASSERT_EQ(std::memcmp(std::bit_cast<const void*>(posted.pieces[0].addr), data.data(), length),
              0);
    finish();
    ASSERT_TRUE(owner_.poll());
  }
}

TEST_F(EmulatorTest, InlineDataUnderWayStaysAsItWas) {
  std::vector<std::uint32_t> sent;
  for (std::uint32_t round = 0; round < 50; ++round) {
    while (sent.size() < 3) {
      const std::uint32_t size = 60 + (round * 97) % 200;
      const std::vector<std::byte> data(size, std::byte(round));
      wire::SendWork work = work_of(Opcode::send);
      work.inline_data = data.data();
      work.inline_length = size;
      go(work);
      sent.push_back(round);
    }
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const ibv_sge piece = native().sends[i].pieces[0];
      const auto* const bytes = std::bit_cast<const std::byte*>(piece.addr);
      ASSERT_TRUE(std::all_of(bytes, bytes + piece.length,
                              [&](std::byte each) { return each == std::byte(sent[i]); }));
    }
    finish();
    sent.erase(sent.begin());
    ASSERT_TRUE(owner_.poll());
  }
}

// Four entries fit the device, thirty-two the ring: all laps, each completed once and in order.
TEST_F(EmulatorTest, TheDeviceHasNoMoreThanItTakes) {
  std::uint16_t completed = 0;
  for (int lap = 0; lap < 100; ++lap) {
    while (owner_.post(work_of(Opcode::send)) == Posted::done) continue;
    owner_.publish();
    turn();
    while (!native().sends.empty()) {
      EXPECT_LE(native().sends.size(), kMostSends);
      finish();
      expect(Syndrome::none, completed++);
    }
    EXPECT_FALSE(owner_.poll());
  }
  EXPECT_EQ(completed, 3200);
}

TEST_F(EmulatorTest, WhatVerbsDoNotHaveCompletesInItsTurn) {
  const LocalBuffer buffer{0x1000, 8, 7};
  go(work_of(Opcode::nop));
  expect(Syndrome::none, 0);
  ASSERT_EQ(owner_.post(work_of(Opcode::send, 0)), Posted::done);
  ASSERT_EQ(owner_.post(work_of(Opcode::nop)), Posted::done);
  wire::SendWork dump = work_of(kDump);
  dump.buffers = &buffer;
  dump.buffer_count = 1;
  go(dump);
  EXPECT_EQ(native().sends.size(), 1U);
  EXPECT_FALSE(owner_.poll()) << "the send before is under way";
  finish();
  expect(Syndrome::none, 2);
  expect(Syndrome::none, 3);
}

TEST_F(EmulatorTest, ReceivesOfEachKind) {
  ASSERT_EQ(owner_.post_receive({0x1000, 64, 7}), Posted::done);
  ASSERT_EQ(owner_.post_receive({0x2000, 64, 8}), Posted::done);
  ASSERT_EQ(owner_.post_receive({0, 0, 0}), Posted::done);
  turn();
  EXPECT_EQ(test::fake().doorbells, 1);
  ASSERT_EQ(native().receives.size(), 3U);
  EXPECT_EQ(native().receives[1].pieces.at(0).addr, 0x2000U);
  EXPECT_EQ(native().receives[1].pieces.at(0).length, 64U);
  EXPECT_EQ(native().receives[1].pieces.at(0).lkey, 8U);
  EXPECT_TRUE(native().receives[2].pieces.empty());
  ibv_wc told{};
  told.byte_len = 10;
  test::fake().finish_receive(native(), told);
  told.byte_len = 20;
  told.wc_flags = IBV_WC_WITH_IMM;
  told.imm_data = 0xdead'beef;
  test::fake().finish_receive(native(), told);
  told.byte_len = 30;
  told.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  test::fake().finish_receive(native(), told);
  turn();
  const CqeKind kinds[] = {CqeKind::received_send, CqeKind::received_send_with_imm,
                           CqeKind::received_write_with_imm};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto completion = owner_.poll_receive();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->kind, kinds[i]);
    EXPECT_EQ(completion->counter, i);
    EXPECT_EQ(completion->queue, pair_.qp_num());
    EXPECT_EQ(completion->byte_count, 10 * (i + 1));
    EXPECT_EQ(completion->immediate, i == 0 ? 0 : 0xdead'beef);
  }
}

TEST_F(EmulatorTest, ReceivesOfManyLaps) {
  std::uint32_t posted = 0;
  for (std::uint32_t done = 0; done < 100; ++done) {
    while (owner_.post_receive({posted, 64, 7}) == Posted::done) ++posted;
    turn();
    ASSERT_EQ(native().receives.size(), 4U) << "as many as the device takes";
    ASSERT_EQ(native().receives.front().pieces.at(0).addr, done);
    ibv_wc told{};
    told.byte_len = done;
    test::fake().finish_receive(native(), told);
    turn();
    const auto completion = owner_.poll_receive();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->byte_count, done);
  }
}

TEST_F(EmulatorTest, SendsWaitForTheConnectionAndReceivesDoNot) {
  QueuePair other(domain_, loop_.queue(), loop_.queue(), options(QpType::uc));
  QueueOwner owner(kSizes, other.qp_num());
  QueueEmulator emulator({domain_, loop_, other}, owner.queues);
  emulator.connect(engine_);
  emulator.start();
  ASSERT_EQ(owner.post(work_of(Opcode::send, wire::kFence)), Posted::done);
  owner.publish();
  ASSERT_EQ(owner.post_receive({0x1000, 8, 7}), Posted::done);
  turn();
  auto& queue = *test::fake().queue_pairs.at(1);
  EXPECT_TRUE(queue.sends.empty());
  EXPECT_EQ(queue.receives.size(), 1U);
  emulator.start_sends();
  turn();
  ASSERT_EQ(queue.sends.size(), 1U);
  EXPECT_EQ(queue.sends[0].send.send_flags, unsigned{IBV_SEND_SIGNALED}) << "UC has no fence";
  emulator.stop();
  turn();
  EXPECT_EQ(emulator.state(), progress::Context::State::idle);
}

// The owner is another thread, like a kernel: 20,000 sends over many laps, with their data.
TEST_F(EmulatorTest, BesideAnOwnerOfAnotherThread) {
  constexpr std::uint64_t kCount = 20'000;
  std::atomic<bool> ends{false};
  std::uint64_t completed = 0;
  std::thread thread([&] {
    std::uint64_t sent = 0;
    while (completed < kCount && !ends.load(std::memory_order_relaxed)) {
      for (; sent < kCount; ++sent) {
        wire::SendWork work = work_of(Opcode::send);
        work.inline_data = &sent;
        work.inline_length = sizeof sent;
        if (owner_.post(work) != Posted::done) break;
      }
      owner_.publish();
      bool worked = false;
      for (; const auto completion = owner_.poll(); ++completed) worked = !completion->is_error();
      if (!worked) std::this_thread::yield();
    }
  });
  std::uint64_t carried_out = 0;
  // The test runs as long as there is progress, however slowly the threads take turns.
  constexpr std::chrono::seconds kPatience(60);
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (carried_out < kCount && std::chrono::steady_clock::now() < deadline) {
    if (!engine_.progress()) std::this_thread::yield();
    test::fake().calls.clear();
    for (; !native().sends.empty(); ++carried_out) {
      std::uint64_t value = 0;
      const ibv_sge piece = native().sends.front().pieces.at(0);
      std::memcpy(&value, std::bit_cast<const void*>(piece.addr), sizeof value);
      if (value != carried_out) break;
      test::fake().finish_send(native());
      deadline = std::chrono::steady_clock::now() + kPatience;
    }
  }
  EXPECT_EQ(carried_out, kCount);
  while (engine_.progress()) continue;
  if (carried_out != kCount) ends = true;
  thread.join();
  EXPECT_EQ(completed, kCount);
}

}  // namespace
}  // namespace offload::rdma
