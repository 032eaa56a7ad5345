#include "tasks/memory/buffer_pool.hpp"

#include <bit>
#include <cstdint>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::memory {
namespace {

using core::Error;
using core::ErrorCode;

std::size_t checked_stride(std::size_t buffer_size, std::size_t alignment) {
  if (!std::has_single_bit(alignment)) {
    throw Error(ErrorCode::invalid_value,
                "an alignment of " + std::to_string(alignment) + " bytes is not a power of two");
  }
  if (buffer_size == 0 || buffer_size > std::numeric_limits<std::size_t>::max() - alignment) {
    throw Error(ErrorCode::invalid_value,
                "invalid buffer size of " + std::to_string(buffer_size) + " bytes");
  }
  return (buffer_size + alignment - 1) / alignment * alignment;
}

std::string pool_of(const MemoryRegion& region) {
  return "buffer pool of memory region '" + region.name() + "'";
}

}  // namespace

BufferPool::BufferPool(MemoryRegion& region, std::size_t buffer_size, std::size_t count,
                       std::size_t alignment)
    : region_(&region),
      buffer_size_(buffer_size),
      alignment_(alignment),
      stride_(checked_stride(buffer_size, alignment)),
      buffers_(*this, count) {}

BufferPool::~BufferPool() {
  if (!started_) return;
  if (buffers_.out() == 0) {
    region_->remove_user();
    return;
  }
  core::log_error("buffer pool of memory region '{}' ends while {} of {} buffers are in use",
                  region_->name(), buffers_.out(), count());
}

void BufferPool::start() {
  if (started_) core::throw_bad_state(pool_of(*region_), "started", "start");
  region_->require_started("have a buffer pool");
  std::size_t placed = 0;
  for (std::size_t range = 0; range < region_->ranges().size(); ++range) {
    placed = lay_out(range, placed);
  }
  if (placed != count()) {
    throw Error(ErrorCode::full, pool_of(*region_) + ": there is room for " +
                                     std::to_string(placed) + " buffers of " +
                                     std::to_string(buffer_size_) + " bytes, not for " +
                                     std::to_string(count()));
  }
  region_->add_user();
  started_ = true;
}

/// Places as many buffers as fit into a range, from index `first` on; returns the next index.
std::size_t BufferPool::lay_out(std::size_t range, std::size_t first) {
  const Range& memory = region_->ranges()[range];
  const auto address = reinterpret_cast<std::uintptr_t>(memory.address);
  // The distance to the next aligned address.
  std::size_t at = (0 - address) & (alignment_ - 1);
  while (first != count() && at <= memory.length && buffer_size_ <= memory.length - at) {
    BufferStack::place(buffers_[first++], *region_, range, {memory.address + at, buffer_size_});
    if (stride_ > memory.length - at) break;
    at += stride_;
  }
  return first;
}

void BufferPool::stop() {
  if (!started_) core::throw_bad_state(pool_of(*region_), "stopped", "stop");
  if (buffers_.out() != 0) {
    throw Error(ErrorCode::in_use, pool_of(*region_) +
                                       " cannot stop: " + std::to_string(buffers_.out()) + " of " +
                                       std::to_string(count()) + " buffers are in use");
  }
  region_->remove_user();
  started_ = false;
}

BufferRef BufferPool::take() noexcept {
  if (!started_) return {};
  BufferRef buffer = buffers_.lend();
  if (buffer) buffer->reset();
  return buffer;
}

}  // namespace offload::memory
