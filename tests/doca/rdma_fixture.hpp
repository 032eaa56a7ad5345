#pragma once

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <doca_rdma.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace offload::doca {

/// Opens the first RDMA device; null: there is none.
inline doca_dev* open_rdma_device() {
  doca_devinfo** list = nullptr;
  std::uint32_t count = 0;
  EXPECT_EQ(doca_devinfo_create_list(&list, &count), DOCA_SUCCESS);
  doca_dev* dev = nullptr;
  for (std::uint32_t i = 0; i < count && dev == nullptr; ++i) {
    if (doca_rdma_cap_task_write_is_supported(list[i]) != DOCA_SUCCESS) continue;
    EXPECT_EQ(doca_dev_open(list[i], &dev), DOCA_SUCCESS);
  }
  EXPECT_EQ(doca_devinfo_destroy_list(list), DOCA_SUCCESS);
  return dev;
}

/// Bytes as a peer gets them.
using Bytes = std::vector<std::byte>;
inline Bytes copy_of(const void* data, std::size_t length) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  return {bytes, bytes + length};
}

/// The end of a task: its user data, status and, of a receive, results.
struct EndedTask {
  std::uint64_t user_data = 0;
  doca_error_t status = DOCA_SUCCESS;
  doca_rdma_opcode opcode = DOCA_RDMA_OPCODE_RECV_SEND;
  doca_be32_t immediate = 0;
  std::uint32_t length = 0;
  const doca_rdma_connection* connection = nullptr;
};

/// An RDMA context with an engine, an mmap that peers may read and write, and an inventory.
class Peer {
 public:
  static constexpr std::uint32_t kTasks = 8;
  static constexpr std::size_t kMemory = 8192;
  static constexpr std::uint32_t kPermissions =
      DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE;

  explicit Peer(doca_dev* dev, std::uint32_t permissions = kPermissions) : dev_(dev) {
    EXPECT_EQ(doca_pe_create(&pe), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_create(dev, &rdma), DOCA_SUCCESS);
    ctx = doca_rdma_as_ctx(rdma);
    EXPECT_EQ(doca_pe_connect_ctx(pe, ctx), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_set_user_data(ctx, {.ptr = this}), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_set_state_changed_cb(ctx, on_state), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_set_permissions(rdma, kPermissions), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_task_receive_set_conf(rdma, on_received, on_received, kTasks),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_task_send_set_conf(rdma, on_sent, on_sent, kTasks), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_task_send_imm_set_conf(rdma, on_sent_imm, on_sent_imm, kTasks),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_task_read_set_conf(rdma, on_read, on_read, kTasks), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_task_write_set_conf(rdma, on_written, on_written, kTasks), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_task_write_imm_set_conf(rdma, on_written_imm, on_written_imm, kTasks),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_create(&mmap), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_set_permissions(mmap, permissions), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_set_memrange(mmap, memory.data(), memory.size()), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_add_dev(mmap, dev), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_start(mmap), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_inventory_create(64, &inventory), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_inventory_start(inventory), DOCA_SUCCESS);
  }
  Peer& operator=(Peer&&) = delete;
  ~Peer() {
    static_cast<void>(doca_ctx_stop(ctx));
    EXPECT_TRUE(until([&] { return state() == DOCA_CTX_STATE_IDLE; }));
    EXPECT_EQ(doca_rdma_destroy(rdma), DOCA_SUCCESS);
    EXPECT_EQ(doca_pe_destroy(pe), DOCA_SUCCESS);
    for (doca_buf* buf : bufs_) EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
    if (remote != nullptr) {
      EXPECT_EQ(doca_mmap_destroy(remote), DOCA_SUCCESS);
    }
    EXPECT_EQ(doca_buf_inventory_destroy(inventory), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_destroy(mmap), DOCA_SUCCESS);
  }

  [[nodiscard]] doca_ctx_states state() const {
    doca_ctx_states now{};
    EXPECT_EQ(doca_ctx_get_state(ctx, &now), DOCA_SUCCESS);
    return now;
  }
  /// doca_pe_progress(), within which callbacks may come.
  void turn() {
    in_progress = true;
    static_cast<void>(doca_pe_progress(pe));
    in_progress = false;
  }
  /// Makes turns of this one and of `other` until `done`.
  template <class Done>
  bool until(Done done, Peer* other = nullptr) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      turn();
      if (other != nullptr) other->turn();
    }
    return true;
  }
  /// Waits for `count` ends of tasks.
  bool ends(std::size_t count, Peer* other = nullptr) {
    return until([&] { return ended.size() >= count; }, other);
  }

  /// Makes a connection; returns its description.
  Bytes make_connection(doca_rdma_connection*& made) {
    const void* details = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(doca_rdma_export(rdma, &details, &size, &made), DOCA_SUCCESS);
    return copy_of(details, size);
  }
  doca_error_t connect(const Bytes& description, doca_rdma_connection* made) {
    return doca_rdma_connect(rdma, description.data(), description.size(), made);
  }
  Bytes exported_memory() {
    const void* blob = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(doca_mmap_export_rdma(mmap, dev_, &blob, &size), DOCA_SUCCESS);
    return copy_of(blob, size);
  }
  doca_error_t import(const Bytes& blob) {
    return doca_mmap_create_from_export(nullptr, blob.data(), blob.size(), dev_, &remote);
  }

  /// A buffer at `offset` of the memory, filled with `value`; it is dropped at the end.
  doca_buf* source(std::size_t offset, std::size_t length, std::uint8_t value) {
    std::memset(memory.data() + offset, value, length);
    doca_buf* buf = nullptr;
    EXPECT_EQ(
        doca_buf_inventory_buf_get_by_data(inventory, mmap, memory.data() + offset, length, &buf),
        DOCA_SUCCESS);
    return bufs_.emplace_back(buf);
  }
  doca_buf* destination(std::size_t offset, std::size_t length) {
    doca_buf* buf = nullptr;
    EXPECT_EQ(
        doca_buf_inventory_buf_get_by_addr(inventory, mmap, memory.data() + offset, length, &buf),
        DOCA_SUCCESS);
    return bufs_.emplace_back(buf);
  }
  /// A buffer at `offset` of the peer's memory, with all of it data or none.
  doca_buf* far(std::size_t offset, std::size_t length, bool is_data) {
    void* begin = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(doca_mmap_get_memrange(remote, &begin, &size), DOCA_SUCCESS);
    auto* const at = static_cast<std::uint8_t*>(begin) + offset;
    doca_buf* buf = nullptr;
    EXPECT_EQ(is_data ? doca_buf_inventory_buf_get_by_data(inventory, remote, at, length, &buf)
                      : doca_buf_inventory_buf_get_by_addr(inventory, remote, at, length, &buf),
              DOCA_SUCCESS);
    return bufs_.emplace_back(buf);
  }
  static std::size_t data_length(const doca_buf* buf) {
    std::size_t length = 0;
    EXPECT_EQ(doca_buf_get_data_len(buf, &length), DOCA_SUCCESS);
    return length;
  }

  doca_error_t receive(doca_buf* into, std::uint64_t user_data = 0) {
    doca_rdma_task_receive* task = nullptr;
    EXPECT_EQ(doca_rdma_task_receive_allocate_init(rdma, into, {.u64 = user_data}, &task),
              DOCA_SUCCESS);
    return submit(doca_rdma_task_receive_as_task(task));
  }
  doca_error_t send(doca_rdma_connection* to, const doca_buf* from) {
    doca_rdma_task_send* task = nullptr;
    EXPECT_EQ(doca_rdma_task_send_allocate_init(rdma, to, from, {}, &task), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_task_send_get_src_buf(task), from);
    return submit(doca_rdma_task_send_as_task(task));
  }
  /// The same, but it is not started before the next flush.
  doca_error_t send_unflushed(doca_rdma_connection* to, const doca_buf* from) {
    doca_rdma_task_send* task = nullptr;
    EXPECT_EQ(doca_rdma_task_send_allocate_init(rdma, to, from, {}, &task), DOCA_SUCCESS);
    return doca_task_submit_ex(doca_rdma_task_send_as_task(task), 0);
  }
  doca_error_t send_imm(doca_rdma_connection* to, const doca_buf* from, doca_be32_t immediate) {
    doca_rdma_task_send_imm* task = nullptr;
    EXPECT_EQ(doca_rdma_task_send_imm_allocate_init(rdma, to, from, immediate, {}, &task),
              DOCA_SUCCESS);
    return submit(doca_rdma_task_send_imm_as_task(task));
  }
  doca_error_t read(doca_rdma_connection* to, const doca_buf* from, doca_buf* into) {
    doca_rdma_task_read* task = nullptr;
    EXPECT_EQ(doca_rdma_task_read_allocate_init(rdma, to, from, into, {}, &task), DOCA_SUCCESS);
    return submit(doca_rdma_task_read_as_task(task));
  }
  doca_error_t write(doca_rdma_connection* to, const doca_buf* from, doca_buf* into) {
    doca_rdma_task_write* task = nullptr;
    EXPECT_EQ(doca_rdma_task_write_allocate_init(rdma, to, from, into, {}, &task), DOCA_SUCCESS);
    return submit(doca_rdma_task_write_as_task(task));
  }
  doca_error_t write_imm(doca_rdma_connection* to, const doca_buf* from, doca_buf* into,
                         doca_be32_t immediate) {
    doca_rdma_task_write_imm* task = nullptr;
    EXPECT_EQ(doca_rdma_task_write_imm_allocate_init(rdma, to, from, into, immediate, {}, &task),
              DOCA_SUCCESS);
    return submit(doca_rdma_task_write_imm_as_task(task));
  }

  doca_pe* pe = nullptr;
  doca_rdma* rdma = nullptr;
  doca_ctx* ctx = nullptr;
  doca_mmap* mmap = nullptr;
  doca_mmap* remote = nullptr;
  doca_buf_inventory* inventory = nullptr;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kMemory);
  std::vector<EndedTask> ended;
  std::vector<doca_ctx_states> states;
  bool in_progress = false;

 private:
  /// Submits a task, which its callback frees; frees it if it is refused.
  static doca_error_t submit(doca_task* task) {
    const doca_error_t result = doca_task_submit(task);
    if (result != DOCA_SUCCESS) doca_task_free(task);
    return result;
  }
  static void took(doca_task* task, EndedTask end, doca_data user_data, doca_data ctx_data) {
    auto& self = *static_cast<Peer*>(ctx_data.ptr);
    EXPECT_TRUE(self.in_progress) << "a callback outside doca_pe_progress()";
    end.user_data = user_data.u64;
    end.status = doca_task_get_status(task);
    self.ended.push_back(end);
    doca_task_free(task);
  }
  static void on_received(doca_rdma_task_receive* task, doca_data user_data, doca_data ctx_data) {
    EndedTask end;
    end.opcode = doca_rdma_task_receive_get_result_opcode(task);
    end.immediate = doca_rdma_task_receive_get_result_immediate_data(task);
    end.length = doca_rdma_task_receive_get_result_len(task);
    end.connection = doca_rdma_task_receive_get_result_rdma_connection(task);
    took(doca_rdma_task_receive_as_task(task), end, user_data, ctx_data);
  }
  static void on_sent(doca_rdma_task_send* task, doca_data user_data, doca_data ctx_data) {
    took(doca_rdma_task_send_as_task(task), {}, user_data, ctx_data);
  }
  static void on_sent_imm(doca_rdma_task_send_imm* task, doca_data user_data, doca_data ctx_data) {
    took(doca_rdma_task_send_imm_as_task(task), {}, user_data, ctx_data);
  }
  static void on_read(doca_rdma_task_read* task, doca_data user_data, doca_data ctx_data) {
    took(doca_rdma_task_read_as_task(task), {}, user_data, ctx_data);
  }
  static void on_written(doca_rdma_task_write* task, doca_data user_data, doca_data ctx_data) {
    took(doca_rdma_task_write_as_task(task), {}, user_data, ctx_data);
  }
  static void on_written_imm(doca_rdma_task_write_imm* task, doca_data user_data,
                             doca_data ctx_data) {
    took(doca_rdma_task_write_imm_as_task(task), {}, user_data, ctx_data);
  }
  static void on_state(const doca_data data, doca_ctx*, doca_ctx_states, doca_ctx_states to) {
    static_cast<Peer*>(data.ptr)->states.push_back(to);
  }

  doca_dev* dev_;
  std::vector<doca_buf*> bufs_;
};

}  // namespace offload::doca
