#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "tests/rdma_tasks/connection_fixture.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using core::Status;
using test::fake;

TEST_F(ConnectionTest, WorkRequestsNameWhatTheTasksSay) {
  start_connected();
  auto source = data(16, 100);
  auto target = room(256, 64);
  WriteTask& write = *writes_->allocate();
  write.source = source.get();
  write.to = place(200, 100);
  write.immediate = 7;
  EXPECT_EQ(connection_.submit(write), Status());
  ReadTask& read = *reads_->allocate();
  read.destination = target.get();
  read.from = place(40, 8);
  read.length = 32;
  EXPECT_EQ(connection_.submit(read), Status());
  FetchAndAddTask& add = *adds_->allocate();
  add.destination = target.get();
  add.at = place(16, 8);
  add.add = 3;
  EXPECT_EQ(connection_.submit(add), Status());
  ASSERT_EQ(queue().sends.size(), 3U);
  const auto& written = queue().sends[0];
  EXPECT_EQ(written.send.opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(written.send.imm_data, htonl(7));
  EXPECT_EQ(written.send.wr.rdma.remote_addr, 0x10064U);
  EXPECT_EQ(written.send.wr.rdma.rkey, 9U);
  ASSERT_EQ(written.pieces.size(), 1U);
  EXPECT_EQ(written.pieces[0].addr, reinterpret_cast<std::uint64_t>(source->data().data()));
  EXPECT_EQ(written.pieces[0].lkey, 11U);
  EXPECT_EQ(queue().sends[1].pieces.at(0).length, 32U);
  EXPECT_EQ(queue().sends[2].send.opcode, IBV_WR_ATOMIC_FETCH_AND_ADD);
  EXPECT_EQ(queue().sends[2].send.wr.atomic.compare_add, 3U);
  EXPECT_EQ(queue().sends[2].send.wr.atomic.remote_addr, 0x10008U);
  for (int i = 0; i < 3; ++i) fake().finish_send(queue());
  turn();
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "ok", "ok"}));
  EXPECT_EQ(target->data().size(), 40U);
}

TEST_F(ConnectionTest, WhatThePeerDidNotGrantIsNotPosted) {
  start_connected();
  const memory::RemoteRegion readable(memory::Access::remote_read, {{0x10000, 100, 9}});
  const auto buffer = memory::RemoteBuffer::of(readable, 0x10008, 64);
  ASSERT_TRUE(buffer);
  auto source = data(0, 8);
  auto target = room(256, 64);
  WriteTask& write = *writes_->allocate();
  write.source = source.get();
  write.to = *buffer;
  EXPECT_EQ(connection_.submit(write), ErrorCode::not_permitted);
  FetchAndAddTask& add = *adds_->allocate();
  add.destination = target.get();
  add.at = *buffer;
  EXPECT_EQ(connection_.submit(add), ErrorCode::not_permitted);
  ReadTask& read = *reads_->allocate();
  read.destination = target.get();
  read.from = *buffer;
  read.length = 65;  // one byte beyond
  EXPECT_EQ(connection_.submit(read), ErrorCode::invalid_value);
  EXPECT_TRUE(queue().sends.empty());
  read.length = 64;
  EXPECT_EQ(connection_.submit(read), Status());
  EXPECT_EQ(queue().sends.at(0).send.wr.rdma.remote_addr, 0x10008U);
  EXPECT_EQ(queue().sends.at(0).send.wr.rdma.rkey, 9U);
}

TEST_F(ConnectionTest, WhatDoesNotFitIsRefused) {
  start_connected();
  auto source = data(0, 100);
  auto small = room(256, 7);
  WriteTask& write = *writes_->allocate();
  write.source = source.get();
  for (const RemoteAddress& to : {place(99), place(100, 1), place(100, 101), place(~0ULL, ~0ULL)}) {
    write.to = to;
    EXPECT_EQ(connection_.submit(write), ErrorCode::invalid_value);
  }
  ReadTask& read = *reads_->allocate();
  read.destination = small.get();
  read.from = place(100);
  read.length = 8;
  EXPECT_EQ(connection_.submit(read), ErrorCode::invalid_value);
  read.length = ~0ULL;
  EXPECT_EQ(connection_.submit(read), ErrorCode::invalid_value);
  FetchAndAddTask& add = *adds_->allocate();
  add.destination = small.get();
  add.at = place(8);
  EXPECT_EQ(connection_.submit(add), ErrorCode::invalid_value);
  auto enough = room(512, 8);
  add.destination = enough.get();
  add.at = place(16, 4);
  EXPECT_EQ(connection_.submit(add), ErrorCode::invalid_value);  // not aligned
  add.at = {{0x10004, 16, 9}, 0};
  EXPECT_EQ(connection_.submit(add), ErrorCode::invalid_value);  // nor is this, where it begins
  CompareAndSwapTask& swap = *swaps_->allocate();
  swap.destination = enough.get();
  swap.at = place(7);
  EXPECT_EQ(connection_.submit(swap), ErrorCode::invalid_value);
  EXPECT_EQ(connection_.in_flight(), 0U);
}

TEST_F(ConnectionTest, TooManyPiecesAndForeignMemoryAreRefused) {
  start_connected();
  auto chain = data(0, 10);
  for (std::size_t i = 1; i < 3; ++i) {
    auto more = data(i * 10, 10);
    ASSERT_TRUE(chain->append_chain(more));
  }
  SendTask& task = *sends_->allocate();
  task.source = chain.get();
  EXPECT_EQ(connection_.submit(task), ErrorCode::invalid_value);
  memory::MemoryRegion stranger({"stranger", memory::Access::local_read},
                                {memory::allocate_range(4096)});
  stranger.start();
  auto foreign = buffers_.take(stranger, {stranger.ranges()[0].address, 100}).buffer;
  ReceiveTask& receive = *receives_->allocate();
  receive.destination = foreign.get();
  EXPECT_EQ(connection_.submit(receive), ErrorCode::invalid_value);
  foreign.reset();
  stranger.stop();
  stranger.add_registrar(registrar_);
  stranger.start();
  foreign = buffers_.take(stranger, {stranger.ranges()[0].address, 100}).buffer;
  receive.destination = foreign.get();
  EXPECT_EQ(connection_.submit(receive), ErrorCode::not_permitted);
}

TEST_F(ConnectionTest, AWordIsAlignedByItsAddressWhereverItsRangeBegins) {
  start_connected();
  auto target = room(0, 8);
  FetchAndAddTask& add = *adds_->allocate();
  add.destination = target.get();
  add.at = {{0x10004, 16, 9}, 4};
  EXPECT_EQ(connection_.submit(add), Status());
  EXPECT_EQ(queue().sends.at(0).send.wr.atomic.remote_addr, 0x10008U);
}

TEST_F(ConnectionTest, ASendSaysWhetherItIsSolicited) {
  start_connected();
  for (const bool solicited : {true, false}) {
    SendTask& task = *sends_->allocate();
    task.solicited = solicited;
    ASSERT_EQ(connection_.submit(task), Status());
    EXPECT_EQ((queue().sends.back().send.send_flags & IBV_SEND_SOLICITED) != 0, solicited);
  }
}

// Without inline data the device needs the key of each piece.
TEST_F(ConnectionTest, EachPieceOfASourceIsOfRegisteredMemory) {
  start_connected();
  memory::MemoryRegion stranger({"stranger", memory::Access::local_read},
                                {memory::allocate_range(4096)});
  stranger.start();
  for (const bool stranger_is_last : {false, true}) {
    auto foreign = buffers_.take_by_data(stranger, {stranger.ranges()[0].address, 10}).buffer;
    auto own = data(0, 10);
    auto& first = stranger_is_last ? own : foreign;
    ASSERT_TRUE(first->append_chain(stranger_is_last ? foreign : own));
    SendTask& task = *sends_->allocate();
    task.source = first.get();
    EXPECT_EQ(connection_.submit(task), ErrorCode::invalid_value) << stranger_is_last;
  }
}

TEST_F(ConnectionTest, ReadsAndAtomicsAreForThoseWhoHaveThem) {
  connection_.start();
  auto peer = a_peer();
  peer.max_dest_rd_atomic = 0;
  connection_.connect_to(peer);
  auto target = room(0, 8);
  ReadTask& read = *reads_->allocate();
  read.destination = target.get();
  read.from = place(8);
  read.length = 8;
  EXPECT_EQ(connection_.submit(read), ErrorCode::not_supported);
  FetchAndAddTask& add = *adds_->allocate();
  add.destination = target.get();
  add.at = place(8);
  EXPECT_EQ(connection_.submit(add), ErrorCode::not_supported);
}

class InlineTest : public ConnectionTest {
 protected:
  static ConnectionOptions options() {
    ConnectionOptions options = small_queues();
    options.queues.max_inline_data = 8;
    return options;
  }
  InlineTest() : ConnectionTest(options()) {}
};

// The fake device makes more of the option, as real ones do.
TEST_F(InlineTest, WhatTheOptionAsksForIsInlineAndNoMore) {
  start_connected();
  const auto eight = data(0, 8);
  const auto nine = data(64, 9);
  for (const memory::Buffer* const source : {eight.get(), nine.get()}) {
    SendTask& send = *sends_->allocate();
    send.source = source;
    ASSERT_EQ(connection_.submit(send), Status());
  }
  EXPECT_NE(queue().sends[0].send.send_flags & IBV_SEND_INLINE, 0U);
  EXPECT_EQ(queue().sends[1].send.send_flags & IBV_SEND_INLINE, 0U);
}

// The processor, which copies it into the work request, cannot read it.
TEST_F(InlineTest, MemoryOfAGpuIsNeverInline) {
  start_connected();
  std::array<std::byte, 64> bytes{};
  memory::MemoryRegion on_gpu(
      {"of a GPU", memory::kLocalAccess},
      {memory::foreign_range(bytes.data(), bytes.size(), memory::Location::device, {})});
  on_gpu.add_registrar(registrar_);
  on_gpu.start();
  {
    auto chain = data(0, 4);
    auto far = buffers_.take_by_data(on_gpu, {bytes.data(), 4}).buffer;
    ASSERT_TRUE(far);
    ASSERT_TRUE(chain->append_chain(far));
    SendTask& send = *sends_->allocate();
    send.source = chain.get();
    ASSERT_EQ(connection_.submit(send), Status());
    EXPECT_EQ(queue().sends[0].send.send_flags & IBV_SEND_INLINE, 0U);
    fake().finish_send(queue());
    turn();
  }
}

}  // namespace
}  // namespace offload::rdma
