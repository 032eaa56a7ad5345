#include <doca_dma.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "tests/doca/dma_fixture.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/process_memory.hpp"

namespace offload::doca {
namespace {

using States = std::vector<std::pair<doca_ctx_states, doca_ctx_states>>;

TEST_F(DmaTest, ACopyEndsInATurnAndItsDataIsAppended) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  frees_ = false;
  doca_dma_task_memcpy* const task = copy_task(0, 7, 1);
  EXPECT_EQ(doca_task_get_ctx(doca_dma_task_memcpy_as_task(task)), ctx_);
  ASSERT_EQ(submit(task), DOCA_SUCCESS);
  EXPECT_EQ(in_flight(), 1U);
  std::size_t all = 0;
  EXPECT_EQ(doca_pe_get_num_inflight_tasks(pe_, &all), DOCA_SUCCESS);
  EXPECT_EQ(all, 1U);
  progress_until_ended(1);
  EXPECT_EQ(ended_[0], std::pair(std::uint64_t{7}, DOCA_SUCCESS));
  EXPECT_EQ(data_length(doca_dma_task_memcpy_get_dst(task)), kPiece);
  EXPECT_TRUE(std::all_of(piece(1), piece(2), [](auto byte) { return byte == 7; }));
  EXPECT_EQ(in_flight(), 0U);
  free_all(task);
}

TEST_F(DmaTest, ATaskIsSubmittedAgainWithOtherBuffersAndData) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  frees_ = false;
  doca_dma_task_memcpy* const task = copy_task(0, 1, 1);
  ASSERT_EQ(submit(task), DOCA_SUCCESS);
  progress_until_ended(1);
  // The buffers are the program's again: their last reference returns them to the inventory.
  EXPECT_EQ(doca_buf_dec_refcount(doca_dma_task_memcpy_get_dst(task), nullptr), DOCA_SUCCESS);
  EXPECT_EQ(
      doca_buf_dec_refcount(const_cast<doca_buf*>(doca_dma_task_memcpy_get_src(task)), nullptr),
      DOCA_SUCCESS);
  std::uint32_t free = 0;
  EXPECT_EQ(doca_buf_inventory_get_num_free_elements(inventory_, &free), DOCA_SUCCESS);
  EXPECT_EQ(free, kBuffers);
  EXPECT_EQ(submit(task), DOCA_ERROR_INVALID_VALUE) << "its buffers were returned";
  doca_task* const base = doca_dma_task_memcpy_as_task(task);
  doca_dma_task_memcpy_set_src(task, source(2, 9));
  doca_dma_task_memcpy_set_dst(task, destination(3));
  doca_task_set_user_data(base, {.u64 = 99});
  EXPECT_EQ(doca_task_get_user_data(base).u64, 99U);
  ASSERT_EQ(doca_task_submit(base), DOCA_SUCCESS);
  progress_until_ended(2);
  EXPECT_EQ(ended_[1], std::pair(std::uint64_t{99}, DOCA_SUCCESS));
  EXPECT_EQ(*piece(3), 9);
  free_all(task);
}

TEST_F(DmaTest, AProgramDropsNoReferenceOfATask) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  frees_ = false;
  doca_dma_task_memcpy* const task = copy_task(0, 7, 1);
  auto* const from = const_cast<doca_buf*>(doca_dma_task_memcpy_get_src(task));
  doca_buf* const to = doca_dma_task_memcpy_get_dst(task);
  ASSERT_EQ(submit(task), DOCA_SUCCESS);
  std::uint16_t count = 0;
  EXPECT_EQ(doca_buf_get_refcount(from, &count), DOCA_SUCCESS);
  EXPECT_EQ(count, 1) << "the task's is not the program's";
  doca_buf* const head = source(2, 1);
  EXPECT_EQ(doca_buf_chain_list(head, from), DOCA_ERROR_NOT_PERMITTED) << "a task reads it";
  for (doca_buf* each : {head, from, to}) {
    EXPECT_EQ(doca_buf_dec_refcount(each, nullptr), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_dec_refcount(each, nullptr), DOCA_ERROR_BAD_STATE);
  }
  std::uint32_t free = 0;
  EXPECT_EQ(doca_buf_inventory_get_num_free_elements(inventory_, &free), DOCA_SUCCESS);
  EXPECT_EQ(free, kBuffers - 2) << "the task has both";
  progress_until_ended(1);
  EXPECT_EQ(ended_[0].second, DOCA_SUCCESS);
  EXPECT_EQ(*piece(1), 7);
  EXPECT_EQ(doca_buf_inventory_get_num_free_elements(inventory_, &free), DOCA_SUCCESS);
  EXPECT_EQ(free, kBuffers);
  doca_task_free(doca_dma_task_memcpy_as_task(task));
}

TEST_F(DmaTest, ListsAreGatheredAndScattered) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  frees_ = false;
  doca_buf* const from = source(0, 1);
  ASSERT_EQ(doca_buf_chain_list(from, source(2, 2)), DOCA_SUCCESS);
  doca_buf* const to = destination(4);
  ASSERT_EQ(doca_buf_chain_list(to, destination(6)), DOCA_SUCCESS);
  doca_dma_task_memcpy* task = nullptr;
  ASSERT_EQ(doca_dma_task_memcpy_alloc_init(dma_, from, to, {}, &task), DOCA_SUCCESS);
  ASSERT_EQ(submit(task), DOCA_SUCCESS);
  progress_until_ended(1);
  EXPECT_EQ(*piece(4), 1);
  EXPECT_EQ(*piece(6), 2);
  free_all(task);
}

TEST_F(DmaTest, MemoryOfAnotherProcessIsCopiedFrom) {
  if (!support::has_process_memory()) GTEST_SKIP() << "memory of other processes: no ptrace here";
  support::ChildProcess child([](int socket) {
    std::vector<std::uint8_t> text(kPiece, 42);
    doca_mmap* mmap = nullptr;
    doca_dev* const dev = open_first_device();
    const void* blob = nullptr;
    std::size_t length = 0;
    if (doca_mmap_create(&mmap) != DOCA_SUCCESS ||
        doca_mmap_set_memrange(mmap, text.data(), text.size()) != DOCA_SUCCESS ||
        doca_mmap_add_dev(mmap, dev) != DOCA_SUCCESS ||
        doca_mmap_set_permissions(mmap, DOCA_ACCESS_FLAG_PCI_READ_ONLY) != DOCA_SUCCESS ||
        doca_mmap_start(mmap) != DOCA_SUCCESS ||
        doca_mmap_export_pci(mmap, dev, &blob, &length) != DOCA_SUCCESS ||
        ::send(socket, blob, length, 0) < 0) {
      return 1;
    }
    char end = 0;
    return ::recv(socket, &end, 1, 0) == 1 ? 0 : 1;  // the memory is here until then
  });
  std::array<char, 1024> blob{};
  const ssize_t length = ::recv(child.socket(), blob.data(), blob.size(), 0);
  ASSERT_GT(length, 0);
  doca_mmap* remote = nullptr;
  ASSERT_EQ(doca_mmap_create_from_export(nullptr, blob.data(), static_cast<std::size_t>(length),
                                         dev_, &remote),
            DOCA_SUCCESS);
  void* at = nullptr;
  std::size_t bytes = 0;
  ASSERT_EQ(doca_mmap_get_memrange(remote, &at, &bytes), DOCA_SUCCESS);
  doca_buf* from = nullptr;
  ASSERT_EQ(doca_buf_inventory_buf_get_by_data(inventory_, remote, at, bytes, &from), DOCA_SUCCESS);
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  doca_dma_task_memcpy* task = nullptr;
  ASSERT_EQ(doca_dma_task_memcpy_alloc_init(dma_, from, destination(3), {}, &task), DOCA_SUCCESS);
  EXPECT_EQ(submit(task), DOCA_SUCCESS);
  progress_until_ended(1);
  EXPECT_EQ(ended_[0].second, DOCA_SUCCESS);
  EXPECT_EQ(*piece(3), 42);
  // It may be read only.
  doca_buf* to = nullptr;
  ASSERT_EQ(doca_buf_inventory_buf_get_by_addr(inventory_, remote, at, bytes, &to), DOCA_SUCCESS);
  doca_buf* const own = source(5, 1);
  ASSERT_EQ(doca_dma_task_memcpy_alloc_init(dma_, own, to, {}, &task), DOCA_SUCCESS);
  EXPECT_EQ(submit(task), DOCA_ERROR_NOT_PERMITTED);
  free_all(task);
  ASSERT_EQ(::send(child.socket(), "x", 1, 0), 1);
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(doca_mmap_destroy(remote), DOCA_SUCCESS);
}

TEST_F(DmaTest, AStopInACallbackFailsTheRestInTheSameTurn) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  stop_after_ = 2;
  for (std::uint8_t i = 0; i < kTasks; ++i) {
    ASSERT_EQ(submit(copy_task(2UL * i, i, 2UL * i + 1)), DOCA_SUCCESS);
  }
  progress_until_ended(kTasks);
  EXPECT_EQ(stopped_, DOCA_ERROR_IN_PROGRESS);
  for (std::size_t i = 0; i < kTasks; ++i) {
    EXPECT_EQ(ended_[i].second, i < 2 ? DOCA_SUCCESS : DOCA_ERROR_SHUTDOWN) << i;
  }
  progress_until_idle();
  EXPECT_EQ(states_, (States{{DOCA_CTX_STATE_IDLE, DOCA_CTX_STATE_RUNNING},
                             {DOCA_CTX_STATE_RUNNING, DOCA_CTX_STATE_STOPPING},
                             {DOCA_CTX_STATE_STOPPING, DOCA_CTX_STATE_IDLE}}));
}

TEST_F(DmaTest, AStopOfTheProgramFailsTasksInFlightInTheNextTurn) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  ASSERT_EQ(submit(copy_task(0, 1, 1)), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_stop(ctx_), DOCA_ERROR_IN_PROGRESS);
  EXPECT_EQ(doca_ctx_stop(ctx_), DOCA_ERROR_IN_PROGRESS);
  EXPECT_TRUE(ended_.empty()) << "a callback came before the turn";
  EXPECT_EQ(in_flight(), 1U);
  EXPECT_EQ(state(), DOCA_CTX_STATE_STOPPING);
  EXPECT_EQ(turn(), 1);
  EXPECT_EQ(ended_[0].second, DOCA_ERROR_SHUTDOWN);
  EXPECT_EQ(state(), DOCA_CTX_STATE_IDLE);
  EXPECT_EQ(doca_ctx_stop(ctx_), DOCA_SUCCESS) << "an idle context stays idle";
}

TEST_F(DmaTest, AStopLastsUntilAllTasksAreFreed) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  doca_dma_task_memcpy* const task = copy_task(0, 1, 1);
  EXPECT_EQ(doca_ctx_stop(ctx_), DOCA_ERROR_IN_PROGRESS);
  EXPECT_EQ(submit(task), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(turn(), 0);
  EXPECT_EQ(state(), DOCA_CTX_STATE_STOPPING);
  EXPECT_EQ(doca_dma_destroy(dma_), DOCA_ERROR_BAD_STATE);
  free_all(task);
  EXPECT_EQ(turn(), 1);
  EXPECT_EQ(state(), DOCA_CTX_STATE_IDLE);
  EXPECT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS) << "it can be started again";
}

TEST_F(DmaTest, AStopWithoutTasksIsSynchronous) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_stop(ctx_), DOCA_SUCCESS);
  EXPECT_EQ(states_.back().second, DOCA_CTX_STATE_IDLE);
}

TEST_F(DmaTest, TheCallbackOfTheIdleStateMayDestroyTheContext) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  destroys_ = true;
  stop_after_ = 1;
  ASSERT_EQ(submit(copy_task(0, 1, 1)), DOCA_SUCCESS);
  for (int turns = 0; turns < 1000 && dma_ != nullptr; ++turns) turn();
  EXPECT_EQ(dma_, nullptr);
}

TEST_F(DmaTest, ATaskThatFailsStopsItsContext) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  doca_dma_task_memcpy* const empty = copy_task(0, 1, 1);
  ASSERT_EQ(doca_buf_reset_data_len(const_cast<doca_buf*>(doca_dma_task_memcpy_get_src(empty))),
            DOCA_SUCCESS);
  ASSERT_EQ(submit(empty), DOCA_SUCCESS);
  ASSERT_EQ(submit(copy_task(2, 2, 3)), DOCA_SUCCESS);
  progress_until_ended(2);
  EXPECT_EQ(ended_[0], std::pair(std::uint64_t{1}, DOCA_ERROR_IO_FAILED));
  EXPECT_EQ(ended_[1], std::pair(std::uint64_t{2}, DOCA_ERROR_SHUTDOWN));
  progress_until_idle();
  EXPECT_EQ(state(), DOCA_CTX_STATE_IDLE);
}

TEST_F(DmaTest, NotificationsWakeAWaiter) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  doca_event_handle_t handle = doca_event_invalid_handle;
  ASSERT_EQ(doca_pe_get_notification_handle(pe_, &handle), DOCA_SUCCESS);
  while (turn() != 0) continue;
  pollfd waiting{handle, POLLIN, 0};
  ASSERT_EQ(doca_pe_request_notification(pe_), DOCA_SUCCESS);
  EXPECT_EQ(::poll(&waiting, 1, 0), 0) << "nothing is in flight";
  ASSERT_EQ(submit(copy_task(0, 1, 1)), DOCA_SUCCESS);
  EXPECT_EQ(::poll(&waiting, 1, 5000), 1);
  ASSERT_EQ(doca_pe_clear_notification(pe_, handle), DOCA_SUCCESS);
  progress_until_ended(1);
  std::uint8_t supported = 0;
  EXPECT_EQ(doca_ctx_get_event_driven_supported(ctx_, &supported), DOCA_SUCCESS);
  EXPECT_EQ(supported, 1);
}

TEST_F(DmaTest, EachWayOfSubmissionCopies) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  EXPECT_EQ(doca_task_try_submit(doca_dma_task_memcpy_as_task(copy_task(0, 1, 1))), DOCA_SUCCESS);
  doca_task* const task = doca_dma_task_memcpy_as_task(copy_task(2, 2, 3));
  EXPECT_EQ(doca_task_submit_ex(task, 64), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_task_submit_ex(task, DOCA_TASK_SUBMIT_FLAG_NONE), DOCA_SUCCESS);
  doca_ctx_flush_tasks(ctx_);
  progress_until_ended(2);
}

TEST_F(DmaTest, WrongUseIsRefused) {
  EXPECT_EQ(doca_pe_destroy(pe_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_pe_connect_ctx(pe_, ctx_), DOCA_ERROR_BAD_STATE);
  doca_dma_task_memcpy* task = nullptr;
  doca_buf* const from = source(0, 1);
  doca_buf* const to = destination(1);
  EXPECT_EQ(doca_dma_task_memcpy_alloc_init(dma_, from, to, {}, &task), DOCA_ERROR_BAD_STATE);
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_start(ctx_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_ctx_set_state_changed_cb(ctx_, on_state), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_dma_task_memcpy_set_conf(dma_, on_end, on_end, 1), DOCA_ERROR_BAD_STATE);
  std::vector<doca_dma_task_memcpy*> tasks(kTasks);
  for (auto& each : tasks) {
    ASSERT_EQ(doca_dma_task_memcpy_alloc_init(dma_, from, to, {}, &each), DOCA_SUCCESS);
  }
  EXPECT_EQ(doca_dma_task_memcpy_alloc_init(dma_, from, to, {}, &task), DOCA_ERROR_NO_MEMORY);
  ASSERT_EQ(submit(tasks[0]), DOCA_SUCCESS);
  EXPECT_EQ(submit(tasks[0]), DOCA_ERROR_BAD_STATE) << "it is in flight";
  doca_task_free(doca_dma_task_memcpy_as_task(tasks[0]));  // logs, and does nothing
  doca_dma_task_memcpy_set_src(tasks[0], nullptr);         // the same
  EXPECT_EQ(doca_dma_task_memcpy_get_src(tasks[0]), from);
  frees_ = false;
  progress_until_ended(1);
  EXPECT_EQ(submit(tasks[1]), DOCA_ERROR_INVALID_VALUE) << "the destination is full";
  for (auto* each : tasks) doca_task_free(doca_dma_task_memcpy_as_task(each));
  EXPECT_EQ(submit(tasks[0]), DOCA_ERROR_BAD_STATE) << "it is free";
  EXPECT_EQ(doca_buf_dec_refcount(from, nullptr), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_dec_refcount(to, nullptr), DOCA_SUCCESS);
}

TEST_F(DmaTest, ACapabilityIsThatOfTheDevice) {
  const doca_devinfo* const info = doca_dev_as_devinfo(dev_);
  EXPECT_EQ(doca_dma_cap_task_memcpy_is_supported(info), DOCA_SUCCESS);
  std::uint64_t size = 0;
  EXPECT_EQ(doca_dma_cap_task_memcpy_get_max_buf_size(info, &size), DOCA_SUCCESS);
  EXPECT_GT(size, 1UL << 40);
  std::uint32_t elements = 0;
  EXPECT_EQ(doca_dma_cap_task_memcpy_get_max_buf_list_len(info, &elements), DOCA_SUCCESS);
  EXPECT_EQ(elements, 64U);
  std::uint32_t tasks = 0;
  EXPECT_EQ(doca_dma_cap_get_max_num_tasks(dma_, &tasks), DOCA_SUCCESS);
  EXPECT_EQ(doca_dma_task_memcpy_set_conf(dma_, on_end, on_end, tasks + 1),
            DOCA_ERROR_INVALID_VALUE);
  doca_data data{};
  EXPECT_EQ(doca_ctx_get_user_data(ctx_, &data), DOCA_SUCCESS);
  EXPECT_EQ(data.ptr, this);
}

TEST_F(DmaTest, AContextIsStartedOnlyIfItIsConfiguredAndConnected) {
  doca_dma* other = nullptr;
  ASSERT_EQ(doca_dma_create(dev_, &other), DOCA_SUCCESS);
  EXPECT_EQ(doca_dev_close(dev_), DOCA_ERROR_IN_USE);
  doca_ctx* const ctx = doca_dma_as_ctx(other);
  ASSERT_EQ(doca_dma_task_memcpy_set_conf(other, on_end, on_end, 1), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_start(ctx), DOCA_ERROR_BAD_STATE) << "it is not connected";
  EXPECT_EQ(doca_ctx_stop(ctx), DOCA_ERROR_NOT_CONNECTED);
  EXPECT_EQ(doca_dma_destroy(other), DOCA_SUCCESS);
  ASSERT_EQ(doca_dma_create(dev_, &other), DOCA_SUCCESS);
  ASSERT_EQ(doca_pe_connect_ctx(pe_, doca_dma_as_ctx(other)), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_start(doca_dma_as_ctx(other)), DOCA_ERROR_BAD_STATE) << "it has no tasks";
  EXPECT_EQ(doca_dma_destroy(other), DOCA_SUCCESS);
}

TEST_F(DmaTest, NullIsRefused) {
  std::uint32_t number = 0;
  std::uint64_t size = 0;
  EXPECT_EQ(doca_dma_create(nullptr, &dma_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dma_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dma_as_ctx(nullptr), nullptr);
  EXPECT_EQ(doca_dma_cap_task_memcpy_is_supported(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dma_cap_task_memcpy_get_max_buf_size(nullptr, &size), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dma_cap_task_memcpy_get_max_buf_list_len(nullptr, &number),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dma_cap_get_max_num_tasks(nullptr, &number), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dma_task_memcpy_set_conf(dma_, nullptr, on_end, 1), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dma_task_memcpy_alloc_init(dma_, nullptr, nullptr, {}, nullptr),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_dma_task_memcpy_as_task(nullptr), nullptr);
  EXPECT_EQ(doca_dma_task_memcpy_get_dst(nullptr), nullptr);
  doca_dma_task_memcpy_set_dst(nullptr, nullptr);
  EXPECT_EQ(doca_ctx_start(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_ctx_stop(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_ctx_get_state(ctx_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_ctx_get_num_inflight_tasks(ctx_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_ctx_get_event_driven_supported(nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_ctx_set_user_data(nullptr, {}), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_ctx_get_user_data(ctx_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_ctx_set_state_changed_cb(ctx_, nullptr), DOCA_ERROR_INVALID_VALUE);
  doca_ctx_flush_tasks(nullptr);
  EXPECT_EQ(doca_pe_create(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_pe_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_pe_connect_ctx(nullptr, ctx_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_pe_progress(nullptr), 0);
  EXPECT_EQ(doca_pe_get_num_inflight_tasks(pe_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_pe_get_notification_handle(pe_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_pe_request_notification(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_pe_clear_notification(nullptr, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_task_submit(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_task_try_submit(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_task_get_status(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_task_get_ctx(nullptr), nullptr);
  doca_task_free(nullptr);
}

}  // namespace
}  // namespace offload::doca
