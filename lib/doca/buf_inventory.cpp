#include <span>
#include <utility>

#include "doca/buf.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_buf_inventory.h"
#include "doca/mmap.hpp"
#include "tasks/memory/inventory.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::ErrorCode;
using offload::memory::BufferInventory;
using offload::memory::Taken;

struct doca_buf_inventory {
  explicit doca_buf_inventory(std::size_t count) : inventory(count) {}
  BufferInventory inventory;
};

namespace {

doca_error_t hand_out(Taken taken, doca_buf** buf) noexcept {
  if (taken.buffer) {
    *buf = handle_of(taken.buffer.release());
    return DOCA_SUCCESS;
  }
  switch (taken.error) {
    case ErrorCode::bad_state: return DOCA_ERROR_NOT_PERMITTED;
    case ErrorCode::empty: return DOCA_ERROR_NO_MEMORY;
    default: return to_doca(taken.error);
  }
}

std::span<std::byte> bytes(void* addr, std::size_t len) noexcept {
  return {static_cast<std::byte*>(addr), len};
}

/// Takes a buffer over a piece of `mmap`, if both can be used.
template <class Take>
doca_error_t take(doca_buf_inventory* inventory, doca_mmap* mmap, const void* addr, doca_buf** buf,
                  Take taken) noexcept {
  if (any_null(inventory, mmap, addr, buf)) return DOCA_ERROR_INVALID_VALUE;
  if (!mmap->region) return DOCA_ERROR_NOT_PERMITTED;
  return hand_out(taken(inventory->inventory, *mmap->region), buf);
}

}  // namespace

doca_error_t doca_buf_inventory_create(size_t num_elements, doca_buf_inventory** inventory) {
  if (inventory == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { *inventory = new doca_buf_inventory(num_elements); });
}

doca_error_t doca_buf_inventory_destroy(doca_buf_inventory* inventory) {
  if (inventory == nullptr) return DOCA_ERROR_INVALID_VALUE;
  const BufferInventory& buffers = inventory->inventory;
  if (buffers.free_count() != buffers.count()) return DOCA_ERROR_IN_USE;
  delete inventory;
  return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_start(doca_buf_inventory* inventory) {
  if (inventory == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { inventory->inventory.start(); });
}

doca_error_t doca_buf_inventory_stop(doca_buf_inventory* inventory) {
  if (inventory == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { inventory->inventory.stop(); });
}

doca_error_t doca_buf_inventory_buf_get_by_args(doca_buf_inventory* inventory, doca_mmap* mmap,
                                                void* addr, size_t len, void* data, size_t data_len,
                                                doca_buf** buf) {
  if (data == nullptr) return DOCA_ERROR_INVALID_VALUE;
  doca_buf* taken = nullptr;
  doca_error_t result = doca_buf_inventory_buf_get_by_addr(inventory, mmap, addr, len, &taken);
  if (result != DOCA_SUCCESS) return result;
  result = buf != nullptr ? doca_buf_set_data(taken, data, data_len) : DOCA_ERROR_INVALID_VALUE;
  if (result != DOCA_SUCCESS) {
    static_cast<void>(doca_buf_dec_refcount(taken, nullptr));
    return result;
  }
  *buf = taken;
  return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_buf_get_by_addr(doca_buf_inventory* inventory, doca_mmap* mmap,
                                                void* addr, size_t len, doca_buf** buf) {
  return take(inventory, mmap, addr, buf, [&](BufferInventory& from, auto& region) {
    return from.take(region, bytes(addr, len));
  });
}

doca_error_t doca_buf_inventory_buf_get_by_data(doca_buf_inventory* inventory, doca_mmap* mmap,
                                                void* data, size_t data_len, doca_buf** buf) {
  return take(inventory, mmap, data, buf, [&](BufferInventory& from, auto& region) {
    return from.take_by_data(region, bytes(data, data_len));
  });
}

doca_error_t doca_buf_inventory_buf_dup(doca_buf_inventory* inventory, const doca_buf* src_buf,
                                        doca_buf** dst_buf) {
  const auto* const source = buffer_of(src_buf);
  if (any_null(inventory, source, dst_buf)) return DOCA_ERROR_INVALID_VALUE;
  return hand_out(inventory->inventory.duplicate(*source), dst_buf);
}

doca_error_t doca_buf_inventory_get_num_elements(doca_buf_inventory* inventory,
                                                 uint32_t* num_elements) {
  if (any_null(inventory, num_elements)) return DOCA_ERROR_INVALID_VALUE;
  *num_elements = static_cast<std::uint32_t>(inventory->inventory.count());
  return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_get_num_free_elements(doca_buf_inventory* inventory,
                                                      uint32_t* num_free_elements) {
  if (any_null(inventory, num_free_elements)) return DOCA_ERROR_INVALID_VALUE;
  *num_free_elements = static_cast<std::uint32_t>(inventory->inventory.free_count());
  return DOCA_SUCCESS;
}
