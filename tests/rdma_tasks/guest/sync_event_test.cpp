#include "tasks/sync/sync_event.hpp"

#include "rdma_tasks/remote_sync_event.hpp"
#include "tests/rdma_tasks/guest/fixture.hpp"

/// A peer works on a sync event, over a real device.
namespace offload::rdma {
namespace {

using core::Status;
using Action = RemoteSyncEventTask::Action;

class SyncEventTest : public DeviceTest {
 protected:
  SyncEventTest()
      : event_({"of b", sync::Publisher::peer}),
        exported_(event_, registrar_),
        a_(objects(), {}, engine_, "a"),
        b_(objects(), {}, engine_, "b"),
        tasks_(a_.connection, 4, a_.outcomes.callbacks<RemoteSyncEventTask>()),
        scratch_(room(0, 8)) {
    peers_ = import_sync_event(exported_.blob());
    a_.connection.start();
    b_.connection.start();
    connect(a_.connection, b_.connection);
    task_ = tasks_.allocate();
  }
  ~SyncEventTest() override {
    stop(a_.connection);
    stop(b_.connection);
  }

  /// Returns the task's result, once it has ended well.
  std::uint64_t run(Action action, std::uint64_t argument = 0) {
    a_.outcomes.all.clear();
    task_->action = action;
    task_->event = peers_;
    task_->argument = argument;
    task_->scratch = scratch_.get();
    EXPECT_EQ(a_.connection.submit(*task_), Status());
    EXPECT_TRUE(until([&] { return !a_.outcomes.all.empty(); }));
    EXPECT_EQ(a_.outcomes.all, Lines{"ok"});
    return task_->result;
  }

  sync::SyncEvent event_;
  ExportedSyncEvent exported_;
  Side a_;
  Side b_;
  progress::TaskPool<RemoteSyncEventTask> tasks_;
  memory::BufferRef scratch_;
  RemoteAddress peers_;
  RemoteSyncEventTask* task_ = nullptr;
};

TEST_F(SyncEventTest, IsSetAddedToAndGot) {
  const std::uint64_t large = 0x1122334455667788;
  run(Action::set, large);
  EXPECT_EQ(event_.get(), large);
  EXPECT_EQ(run(Action::add, 2), large);
  EXPECT_EQ(event_.get(), large + 2);
  event_.set(7);
  EXPECT_EQ(run(Action::get), 7U);
}

// Like the reference's requester, gets the event until its owner has set it.
TEST_F(SyncEventTest, IsGotUntilItsOwnerHasSetIt) {
  run(Action::set, 1);
  std::jthread owner([&] {
    EXPECT_TRUE(event_.wait_greater(0, sync::WaitMode::block, std::chrono::seconds(10)));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that several gets find 1
    event_.set(2);
  });
  int gets = 0;
  const auto limit = core::Clock::now() + std::chrono::seconds(10);
  while (run(Action::get) < 2 && core::Clock::now() < limit) ++gets;
  EXPECT_EQ(event_.get(), 2U);
  EXPECT_GT(gets, 0);
  run(Action::set, 3);
  EXPECT_EQ(event_.get(), 3U);
}

TEST_F(SyncEventTest, WhatItsOwnerDoesNotGrantIsRefusedHere) {
  const ExportedSyncEvent read_only(event_, registrar_, memory::Access::remote_read);
  task_->event = import_sync_event(read_only.blob());
  task_->scratch = scratch_.get();
  task_->action = Action::set;
  EXPECT_EQ(a_.connection.submit(*task_), core::ErrorCode::not_permitted);
  task_->action = Action::add;
  EXPECT_EQ(a_.connection.submit(*task_), core::ErrorCode::not_permitted);
  task_->action = Action::get;
  EXPECT_EQ(a_.connection.submit(*task_), Status());
  EXPECT_TRUE(until([&] { return !a_.outcomes.all.empty(); }));
  EXPECT_EQ(a_.outcomes.all, Lines{"ok"});
}

TEST_F(SyncEventTest, WakesWhoSleepsOnIt) {
  EXPECT_EQ(run(Action::add, 1), 0U);
  EXPECT_TRUE(event_.wait_greater(0, sync::WaitMode::block, std::chrono::seconds(10)));
  EXPECT_FALSE(event_.wait_greater(1, sync::WaitMode::block, std::chrono::milliseconds(1)));
}

TEST_F(SyncEventTest, WhatWasWrittenBeforeASetIsThereWithIt) {
  constexpr std::size_t kSize = 256UL << 10;
  const auto source = data(4096, kSize);
  WriteTask& write = taken(a_.writes);
  write.source = source.get();
  write.to = place(4UL << 20);
  task_->action = Action::set;
  task_->event = peers_;
  task_->argument = 1;
  task_->scratch = scratch_.get();
  ASSERT_EQ(a_.connection.submit_unflushed(write), Status());
  ASSERT_EQ(a_.connection.submit(*task_), Status());
  ASSERT_TRUE(until([&] { return event_.get() == 1; }, false));
  const auto from = bytes(4096, kSize);
  EXPECT_TRUE(std::equal(from.begin(), from.end(), bytes(4UL << 20, kSize).begin()));
  EXPECT_TRUE(until([&] { return a_.outcomes.all.size() == 2; }));
}

}  // namespace
}  // namespace offload::rdma
