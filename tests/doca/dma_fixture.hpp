#pragma once

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace offload::doca {

/// Opens the first device, which is a host device.
inline doca_dev* open_first_device() {
  doca_devinfo** list = nullptr;
  std::uint32_t count = 0;
  EXPECT_EQ(doca_devinfo_create_list(&list, &count), DOCA_SUCCESS);
  doca_dev* dev = nullptr;
  EXPECT_GE(count, 1U);
  EXPECT_EQ(doca_dev_open(list[0], &dev), DOCA_SUCCESS);
  EXPECT_EQ(doca_devinfo_destroy_list(list), DOCA_SUCCESS);
  return dev;
}

/// A started mmap of 64 pieces of 64 bytes and a started inventory.
class MemoryTest : public testing::Test {
 protected:
  static constexpr std::size_t kPiece = 64;
  static constexpr std::size_t kBuffers = 8;

  MemoryTest() : dev_(open_first_device()) {
    EXPECT_EQ(doca_mmap_create(&mmap_), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_set_memrange(mmap_, memory_.data(), memory_.size()), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_add_dev(mmap_, dev_), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_start(mmap_), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_inventory_create(kBuffers, &inventory_), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_inventory_start(inventory_), DOCA_SUCCESS);
  }
  ~MemoryTest() override {
    EXPECT_EQ(doca_buf_inventory_destroy(inventory_), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_destroy(mmap_), DOCA_SUCCESS);
    EXPECT_EQ(doca_dev_close(dev_), DOCA_SUCCESS);
  }

  std::uint8_t* piece(std::size_t index) { return memory_.data() + index * kPiece; }
  /// A buffer without data over a piece.
  doca_buf* destination(std::size_t index) {
    doca_buf* buf = nullptr;
    EXPECT_EQ(doca_buf_inventory_buf_get_by_addr(inventory_, mmap_, piece(index), kPiece, &buf),
              DOCA_SUCCESS);
    return buf;
  }
  /// A buffer whose data is a piece that is filled with `value`.
  doca_buf* source(std::size_t index, std::uint8_t value) {
    std::memset(piece(index), value, kPiece);
    doca_buf* buf = nullptr;
    EXPECT_EQ(doca_buf_inventory_buf_get_by_data(inventory_, mmap_, piece(index), kPiece, &buf),
              DOCA_SUCCESS);
    return buf;
  }
  static std::size_t data_length(const doca_buf* buf) {
    std::size_t length = 0;
    EXPECT_EQ(doca_buf_get_data_len(buf, &length), DOCA_SUCCESS);
    return length;
  }

  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(64 * kPiece);
  doca_dev* dev_;
  doca_mmap* mmap_ = nullptr;
  doca_buf_inventory* inventory_ = nullptr;
};

/// The same with a progress engine and a DMA context of four tasks, which is connected.
class DmaTest : public MemoryTest {
 protected:
  static constexpr std::uint32_t kTasks = 4;

  DmaTest() {
    EXPECT_EQ(doca_pe_create(&pe_), DOCA_SUCCESS);
    EXPECT_EQ(doca_dma_create(dev_, &dma_), DOCA_SUCCESS);
    ctx_ = doca_dma_as_ctx(dma_);
    EXPECT_EQ(doca_pe_connect_ctx(pe_, ctx_), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_set_user_data(ctx_, {.ptr = this}), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_set_state_changed_cb(ctx_, on_state), DOCA_SUCCESS);
    EXPECT_EQ(doca_dma_task_memcpy_set_conf(dma_, on_end, on_end, kTasks), DOCA_SUCCESS);
  }
  ~DmaTest() override {
    if (dma_ != nullptr) {
      EXPECT_NE(doca_ctx_stop(ctx_), DOCA_ERROR_INVALID_VALUE);
      progress_until_idle();
      EXPECT_EQ(doca_dma_destroy(dma_), DOCA_SUCCESS);
    }
    EXPECT_EQ(doca_pe_destroy(pe_), DOCA_SUCCESS);
  }

  /// Takes a task that copies piece `from`, filled with `value`, to piece `to`.
  doca_dma_task_memcpy* copy_task(std::size_t from, std::uint8_t value, std::size_t to) {
    doca_dma_task_memcpy* task = nullptr;
    EXPECT_EQ(doca_dma_task_memcpy_alloc_init(dma_, source(from, value), destination(to),
                                              {.u64 = value}, &task),
              DOCA_SUCCESS);
    return task;
  }
  /// Frees a task and its buffers.
  static void free_all(doca_dma_task_memcpy* task) {
    auto* const from = const_cast<doca_buf*>(doca_dma_task_memcpy_get_src(task));
    doca_buf* const to = doca_dma_task_memcpy_get_dst(task);
    EXPECT_EQ(doca_buf_dec_refcount(from, nullptr), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_dec_refcount(to, nullptr), DOCA_SUCCESS);
    doca_task_free(doca_dma_task_memcpy_as_task(task));
  }
  static doca_error_t submit(doca_dma_task_memcpy* task) {
    return doca_task_submit(doca_dma_task_memcpy_as_task(task));
  }
  [[nodiscard]] doca_ctx_states state() const {
    doca_ctx_states state{};
    EXPECT_EQ(doca_ctx_get_state(ctx_, &state), DOCA_SUCCESS);
    return state;
  }
  [[nodiscard]] std::size_t in_flight() const {
    std::size_t count = 0;
    EXPECT_EQ(doca_ctx_get_num_inflight_tasks(ctx_, &count), DOCA_SUCCESS);
    return count;
  }
  void progress_until_ended(std::size_t count) {
    for (int turns = 0; turns < 1000 && ended_.size() < count; ++turns) turn();
    ASSERT_EQ(ended_.size(), count);
  }
  void progress_until_idle() {
    for (int turns = 0; turns < 1000 && dma_ != nullptr && state() != DOCA_CTX_STATE_IDLE; ++turns)
      turn();
  }

  static void on_end(doca_dma_task_memcpy* task, doca_data task_data, doca_data ctx_data) {
    auto& self = *static_cast<DmaTest*>(ctx_data.ptr);
    EXPECT_TRUE(self.in_progress_) << "a callback outside doca_pe_progress()";
    doca_task* const base = doca_dma_task_memcpy_as_task(task);
    self.ended_.emplace_back(task_data.u64, doca_task_get_status(base));
    if (self.stop_after_ == self.ended_.size()) self.stopped_ = doca_ctx_stop(self.ctx_);
    if (self.frees_) free_all(task);
  }
  static void on_state(const doca_data data, doca_ctx* ctx, doca_ctx_states from,
                       doca_ctx_states to) {
    auto& self = *static_cast<DmaTest*>(data.ptr);
    EXPECT_EQ(ctx, self.ctx_);
    self.states_.emplace_back(from, to);
    if (to == DOCA_CTX_STATE_IDLE && self.destroys_) {
      EXPECT_EQ(doca_dma_destroy(std::exchange(self.dma_, nullptr)), DOCA_SUCCESS);
    }
  }
  /// doca_pe_progress(), within which callbacks may come.
  std::uint8_t turn() {
    in_progress_ = true;
    const std::uint8_t worked = ::doca_pe_progress(pe_);
    in_progress_ = false;
    return worked;
  }

  doca_pe* pe_ = nullptr;
  doca_dma* dma_ = nullptr;
  doca_ctx* ctx_ = nullptr;
  std::vector<std::pair<std::uint64_t, doca_error_t>> ended_;  ///< user data and status
  std::vector<std::pair<doca_ctx_states, doca_ctx_states>> states_;
  bool in_progress_ = false;
  bool frees_ = true;           ///< a callback frees its task
  bool destroys_ = false;       ///< the context, when it is idle
  std::size_t stop_after_ = 0;  ///< a callback stops the context after this many; 0: never
  doca_error_t stopped_ = DOCA_ERROR_UNKNOWN;
};

}  // namespace offload::doca
