#pragma once

#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_mmap.h>
#include <doca_pe.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"

/// Helpers of the measured programs that are written for DOCA's interface.
namespace offload::bench {

inline void check(doca_error_t result, const char* what) {
  if (result == DOCA_SUCCESS) return;
  throw core::Error(core::ErrorCode::io_failed,
                    std::string(what) + ": " + doca_error_get_name(result));
}

/// Opens the first device for which `is_it` returns true. Throws Error.
template <class IsIt>
doca_dev* open_device(IsIt is_it) {
  doca_devinfo** list = nullptr;
  std::uint32_t count = 0;
  check(doca_devinfo_create_list(&list, &count), "cannot list devices");
  doca_dev* dev = nullptr;
  for (std::uint32_t i = 0; i < count && dev == nullptr; ++i) {
    if (is_it(list[i])) check(doca_dev_open(list[i], &dev), "cannot open a device");
  }
  check(doca_devinfo_destroy_list(list), "cannot drop the list of devices");
  if (dev == nullptr) throw core::Error(core::ErrorCode::not_found, "there is no such device");
  return dev;
}

/// A progress engine with one context.
struct Party {
  Party() { check(doca_pe_create(&pe), "cannot make a progress engine"); }
  Party& operator=(Party&&) = delete;
  ~Party() { doca_pe_destroy(pe); }

  void connect(doca_ctx* own, void* user) {
    ctx = own;
    check(doca_pe_connect_ctx(pe, ctx), "cannot connect a context");
    check(doca_ctx_set_user_data(ctx, {.ptr = user}), "cannot set user data");
  }
  void start() {
    const doca_error_t result = doca_ctx_start(ctx);
    if (result != DOCA_ERROR_IN_PROGRESS) check(result, "cannot start a context");
  }
  void turn() const noexcept { doca_pe_progress(pe); }
  [[nodiscard]] doca_ctx_states state() const noexcept {
    doca_ctx_states now{};
    doca_ctx_get_state(ctx, &now);
    return now;
  }

  doca_pe* pe = nullptr;
  doca_ctx* ctx = nullptr;
};

/// Calls `turn` until `done` returns true, for some seconds at most. Returns whether it did.
template <class Done, class Turn>
bool turn_until(Done done, Turn turn) {
  const auto limit = core::Clock::now() + std::chrono::seconds(5);
  while (!done() && core::Clock::now() < limit) turn();
  return done();
}
/// The same. Throws Error if it did not.
template <class Done, class Turn>
void until(Done done, Turn turn) {
  if (turn_until(done, turn)) return;
  throw core::Error(core::ErrorCode::timed_out, "no progress");
}

/// A started mmap of its own memory, with an inventory.
struct MappedMemory {
  MappedMemory(doca_dev* dev, std::size_t size, std::uint32_t permissions, std::size_t buffers)
      : bytes(size) {
    check(doca_mmap_create(&mmap), "cannot make an mmap");
    check(doca_mmap_set_memrange(mmap, bytes.data(), size), "cannot set its memory");
    check(doca_mmap_set_permissions(mmap, permissions), "cannot set its permissions");
    check(doca_mmap_add_dev(mmap, dev), "cannot add a device");
    check(doca_mmap_start(mmap), "cannot start an mmap");
    check(doca_buf_inventory_create(buffers, &inventory), "cannot make an inventory");
    check(doca_buf_inventory_start(inventory), "cannot start an inventory");
  }
  MappedMemory& operator=(MappedMemory&&) = delete;
  ~MappedMemory() {
    for (doca_buf* buf : bufs_) doca_buf_dec_refcount(buf, nullptr);
    doca_buf_inventory_destroy(inventory);
    doca_mmap_destroy(mmap);
  }
  /// Makes a buffer without data, at `offset` of this memory or at `at` of another mmap.
  doca_buf* take(std::size_t offset, std::size_t length) {
    return take(mmap, &bytes[offset], length);
  }
  doca_buf* take(doca_mmap* of, void* at, std::size_t length) {
    doca_buf* buf = nullptr;
    check(doca_buf_inventory_buf_get_by_addr(inventory, of, at, length, &buf),
          "cannot make a buffer");
    return bufs_.emplace_back(buf);
  }
  /// Makes a buffer that is full of data.
  doca_buf* take_full(std::size_t offset, std::size_t length) {
    doca_buf* const buf = take(offset, length);
    check(doca_buf_set_data_len(buf, length), "cannot set the data of a buffer");
    return buf;
  }

  std::vector<char> bytes;
  doca_mmap* mmap = nullptr;
  doca_buf_inventory* inventory = nullptr;

 private:
  std::vector<doca_buf*> bufs_;
};

}  // namespace offload::bench
