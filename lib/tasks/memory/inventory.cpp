#include "tasks/memory/inventory.hpp"

#include <string>
#include <utility>

#include "core/log.hpp"

namespace offload::memory {

using core::ErrorCode;

BufferInventory::~BufferInventory() {
  if (buffers_.out() == 0) return;
  core::log_error("buffer inventory ends with {} of {} buffers in use", buffers_.out(), count());
}

void BufferInventory::start() {
  if (started_) core::throw_bad_state("buffer inventory", "started", "start");
  started_ = true;
}

void BufferInventory::stop() {
  if (!started_) core::throw_bad_state("buffer inventory", "stopped", "stop");
  if (buffers_.out() != 0) {
    throw core::Error(ErrorCode::in_use,
                      "buffer inventory cannot stop: " + std::to_string(buffers_.out()) + " of " +
                          std::to_string(count()) + " buffers are in use");
  }
  started_ = false;
}

Taken BufferInventory::take(MemoryRegion& region, std::span<std::byte> dataroom) noexcept {
  if (!started_ || !region.started()) return {{}, ErrorCode::bad_state};
  const auto range = region.find(dataroom.data(), dataroom.size());
  if (!range || dataroom.empty()) return {{}, ErrorCode::invalid_value};
  BufferRef buffer = buffers_.lend();
  if (!buffer) return {{}, ErrorCode::empty};
  BufferStack::place(*buffer, region, *range, dataroom);
  region.add_user();
  return {std::move(buffer)};
}

Taken BufferInventory::take_by_data(MemoryRegion& region, std::span<std::byte> data) noexcept {
  Taken taken = take(region, data);
  if (taken.buffer) static_cast<void>(taken.buffer->append(data.size()));
  return taken;
}

Taken BufferInventory::duplicate(const Buffer& buffer) noexcept {
  Taken taken = take(buffer.region(), buffer.dataroom());
  if (taken.buffer) {
    static_cast<void>(taken.buffer->set_data(buffer.headroom().size(), buffer.data().size()));
  }
  return taken;
}

void BufferInventory::give_back(Buffer& buffer) noexcept {
  buffer.region().remove_user();
  buffers_.take_back(buffer);
}

}  // namespace offload::memory
