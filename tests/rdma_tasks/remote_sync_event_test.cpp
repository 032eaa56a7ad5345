#include "rdma_tasks/remote_sync_event.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "memory/region_export.hpp"
#include "tests/rdma_tasks/connection_fixture.hpp"

/// A peer's sync event: what is posted, what comes of it, and what is refused.
namespace offload::rdma {
namespace {

using core::ErrorCode;
using core::Status;
using test::fake;
using Action = RemoteSyncEventTask::Action;

class RemoteSyncEventTest : public ConnectionTest {
 protected:
  explicit RemoteSyncEventTest(const ConnectionOptions& options = small_queues())
      : ConnectionTest(options),
        events_(connection_, 8, outcomes_.callbacks<RemoteSyncEventTask>()),
        scratch_(room(0, 8)) {}

  RemoteSyncEventTask& task(Action action, std::uint64_t argument = 0) {
    RemoteSyncEventTask& task = *events_.allocate();
    task.action = action;
    task.event = place(64);
    task.argument = argument;
    task.scratch = scratch_.get();
    return task;
  }
  /// The device's eight bytes.
  std::uint64_t word() {
    std::uint64_t value = 0;
    std::memcpy(&value, scratch_->dataroom().data(), sizeof value);
    return value;
  }
  void put_word(std::uint64_t value) {
    std::memcpy(scratch_->dataroom().data(), &value, sizeof value);
  }
  const test::Posted& posted() { return queue().sends.back(); }

  progress::TaskPool<RemoteSyncEventTask> events_;
  memory::BufferRef scratch_;
};

TEST_F(RemoteSyncEventTest, ASetWritesTheValue) {
  start_connected();
  RemoteSyncEventTask& set = task(Action::set, 0x1122334455667788);
  ASSERT_EQ(connection_.submit(set), Status());
  EXPECT_EQ(posted().send.opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(posted().send.wr.rdma.remote_addr, 0x10000U);
  EXPECT_EQ(posted().send.wr.rdma.rkey, 9U);
  EXPECT_EQ(posted().send.send_flags & IBV_SEND_INLINE, 0U);
  ASSERT_EQ(posted().pieces.size(), 1U);
  EXPECT_EQ(posted().pieces[0].addr, reinterpret_cast<std::uint64_t>(scratch_->dataroom().data()));
  EXPECT_EQ(posted().pieces[0].length, 8U);
  EXPECT_EQ(posted().pieces[0].lkey, 11U);
  EXPECT_EQ(word(), 0x1122334455667788U);
  fake().finish_send(queue());
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"ok"});
  EXPECT_TRUE(scratch_->data().empty());
}

TEST_F(RemoteSyncEventTest, AnAddTellsWhatWasThereBefore) {
  start_connected();
  RemoteSyncEventTask& add = task(Action::add, 3);
  ASSERT_EQ(connection_.submit(add), Status());
  EXPECT_EQ(posted().send.opcode, IBV_WR_ATOMIC_FETCH_AND_ADD);
  EXPECT_EQ(posted().send.wr.atomic.remote_addr, 0x10000U);
  EXPECT_EQ(posted().send.wr.atomic.rkey, 9U);
  EXPECT_EQ(posted().send.wr.atomic.compare_add, 3U);
  put_word(40);  // as the device does
  fake().finish_send(queue());
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"ok"});
  EXPECT_EQ(add.result, 40U);
}

TEST_F(RemoteSyncEventTest, AGetReadsAndMayBeSubmittedAgainAsItIs) {
  start_connected();
  RemoteSyncEventTask& get = task(Action::get);
  for (const std::uint64_t value : {5U, 6U}) {
    ASSERT_EQ(connection_.submit(get), Status());
    EXPECT_EQ(posted().send.opcode, IBV_WR_RDMA_READ);
    EXPECT_EQ(posted().send.wr.rdma.remote_addr, 0x10000U);
    put_word(value);
    fake().finish_send(queue());
    turn();
    EXPECT_EQ(get.result, value);
  }
  EXPECT_EQ(outcomes_.all, (Lines{"ok", "ok"}));
}

TEST_F(RemoteSyncEventTest, OneThatFailsHasNoResult) {
  start_connected();
  RemoteSyncEventTask& get = task(Action::get);
  ASSERT_EQ(connection_.submit(get), Status());
  put_word(5);
  fake().finish_send(queue(), IBV_WC_REM_ACCESS_ERR);
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"io_failed"});
  EXPECT_EQ(get.result, 0U);
}

TEST_F(RemoteSyncEventTest, WhatIsNoWordOfThePeersIsRefused) {
  start_connected();
  for (const Action action : {Action::get, Action::set, Action::add}) {
    RemoteSyncEventTask& refused = task(action, 7);
    for (const RemoteAddress& event : {place(7), place(64, 57), place(64, 4), place(64, ~0ULL)}) {
      refused.event = event;
      EXPECT_EQ(connection_.submit(refused), ErrorCode::invalid_value);
    }
  }
  EXPECT_EQ(word(), 0U);
  RemoteSyncEventTask& unknown = task(static_cast<Action>(3));
  EXPECT_EQ(connection_.submit(unknown), ErrorCode::invalid_value);
  EXPECT_EQ(connection_.in_flight(), 0U);
}

TEST_F(RemoteSyncEventTest, ScratchIsEightBytesThatTheDeviceMayWrite) {
  start_connected();
  auto small = room(16, 7);
  memory::MemoryRegion stranger({"stranger", memory::kLocalAccess}, {memory::allocate_range(4096)});
  stranger.start();
  auto foreign = buffers_.take(stranger, {stranger.ranges()[0].address, 8}).buffer;
  memory::MemoryRegion for_reading({"for reading", memory::Access::local_read},
                                   {memory::allocate_range(4096)});
  for_reading.add_registrar(registrar_);
  for_reading.start();
  auto constant = buffers_.take(for_reading, {for_reading.ranges()[0].address, 8}).buffer;
  memory::Range on_card = memory::allocate_range(4096);
  on_card.location = memory::Location::device;
  memory::MemoryRegion of_device({"of a device", memory::kLocalAccess}, {on_card});
  of_device.add_registrar(registrar_);
  of_device.start();
  auto far = buffers_.take(of_device, {of_device.ranges()[0].address, 8}).buffer;
  RemoteSyncEventTask& refused = task(Action::set);
  for (memory::Buffer* const scratch : {static_cast<memory::Buffer*>(nullptr), small.get(),
                                        foreign.get(), constant.get(), far.get()}) {
    refused.scratch = scratch;
    EXPECT_EQ(connection_.submit(refused), ErrorCode::invalid_value);
  }
}

TEST_F(RemoteSyncEventTest, WithoutReadsOrAtomicsItCanBeSetAlone) {
  connection_.start();
  auto peer = a_peer();
  peer.max_dest_rd_atomic = 0;
  connection_.connect_to(peer);
  EXPECT_EQ(connection_.submit(task(Action::get)), ErrorCode::not_supported);
  EXPECT_EQ(connection_.submit(task(Action::add)), ErrorCode::not_supported);
  EXPECT_EQ(connection_.submit(task(Action::set)), Status());
}

class InlineSyncEventTest : public RemoteSyncEventTest {
 protected:
  static ConnectionOptions options() {
    ConnectionOptions options = small_queues();
    options.queues.max_inline_data = 8;
    return options;
  }
  InlineSyncEventTest() : RemoteSyncEventTest(options()) {}
};

TEST_F(InlineSyncEventTest, AValueTravelsInTheRequest) {
  start_connected();
  ASSERT_EQ(connection_.submit(task(Action::set, 1)), Status());
  EXPECT_NE(posted().send.send_flags & IBV_SEND_INLINE, 0U);
  ASSERT_EQ(connection_.submit(task(Action::get)), Status());
  EXPECT_EQ(posted().send.send_flags & IBV_SEND_INLINE, 0U);
}

TEST_F(ConnectionTest, AnExportedEventIsImportedWithItsRights) {
  const sync::SyncEvent event({.name = "x", .publisher = sync::Publisher::peer});
  const ExportedSyncEvent exported(event, registrar_, memory::Access::remote_read);
  const RemoteAddress address = import_sync_event(exported.blob());
  EXPECT_EQ(address.range.address, reinterpret_cast<std::uint64_t>(&event.words()));
  EXPECT_EQ(address.offset, 0U);
  EXPECT_EQ(address.granted, memory::Access::remote_read);
  // Memory that is not of an event's size or place.
  memory::MemoryRegion other(
      {"other", memory::kLocalAccess | memory::Access::remote_read},
      {memory::borrow_range(std::span(region_.ranges()[0].address + 8, 64))});
  other.add_registrar(registrar_);
  other.start();
  const auto blob = memory::export_remote(other, registrar_, memory::Access::remote_read);
  EXPECT_THROW(import_sync_event(blob), core::Error);
  EXPECT_THROW(import_sync_event({}), core::Error);
}

}  // namespace
}  // namespace offload::rdma
