#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "memory/region.hpp"
#include "tasks/memory/buffer.hpp"
#include "tasks/memory/buffer_stack.hpp"

namespace offload::memory {

/// The result of taking a buffer: the buffer, or the reason that there is none.
struct Taken {
  BufferRef buffer;  ///< null if there is none
  /// Only without a buffer: empty (all are in use), bad_state (the inventory or the region is
  /// stopped), invalid_value (there are no bytes, or they are not in one range of the region).
  core::ErrorCode error = core::ErrorCode::unexpected;
};

/// A fixed number of buffers that can describe any piece of any region. A region cannot stop while
/// a buffer describes a piece of it. One thread uses the inventory and its buffers; nothing is
/// allocated after the constructor.
class BufferInventory final : private BufferOwner {
 public:
  /// Throws Error: invalid_value for a count of 0, no_memory.
  explicit BufferInventory(std::size_t count) : buffers_(*this, count) {}
  /// Logs an error if buffers are still in use; their regions can then never stop.
  ~BufferInventory() {
    if (buffers_.out() == 0) return;
    core::log_error("buffer inventory ends with {} of {} buffers in use", buffers_.out(), count());
  }
  BufferInventory& operator=(BufferInventory&&) = delete;

  /// Throws Error (bad_state) if it is started.
  void start() {
    if (started_) core::throw_bad_state("buffer inventory", "started", "start");
    started_ = true;
  }
  /// Throws Error: bad_state; in_use while buffers are in use, and it stays started.
  void stop() {
    if (!started_) core::throw_bad_state("buffer inventory", "stopped", "stop");
    if (buffers_.out() != 0) {
      throw core::Error(core::ErrorCode::in_use,
                        "buffer inventory cannot stop: " + std::to_string(buffers_.out()) + " of " +
                            std::to_string(count()) + " buffers are in use");
    }
    started_ = false;
  }

  /// A buffer over `dataroom` without data, as a destination.
  [[nodiscard]] Taken take(MemoryRegion& region, std::span<std::byte> dataroom) noexcept {
    if (!started_ || !region.started()) return {{}, core::ErrorCode::bad_state};
    const auto range = region.find(dataroom.data(), dataroom.size());
    if (!range || dataroom.empty()) return {{}, core::ErrorCode::invalid_value};
    BufferRef buffer = buffers_.lend();
    if (!buffer) return {{}, core::ErrorCode::empty};
    BufferStack::place(*buffer, region, *range, dataroom);
    region.add_user();
    return {std::move(buffer)};
  }
  /// A buffer over `data`, all of it data, as a source.
  [[nodiscard]] Taken take_by_data(MemoryRegion& region, std::span<std::byte> data) noexcept {
    Taken taken = take(region, data);
    if (taken.buffer) static_cast<void>(taken.buffer->append(data.size()));
    return taken;
  }
  /// Another buffer over the same dataroom and data, in no list. `buffer` may be of any owner.
  [[nodiscard]] Taken duplicate(const Buffer& buffer) noexcept {
    Taken taken = take(buffer.region(), buffer.dataroom());
    if (taken.buffer) {
      static_cast<void>(taken.buffer->set_data(buffer.headroom().size(), buffer.data().size()));
    }
    return taken;
  }

  [[nodiscard]] bool started() const noexcept { return started_; }
  [[nodiscard]] std::size_t count() const noexcept { return buffers_.count(); }
  /// The number of buffers not in use.
  [[nodiscard]] std::size_t free_count() const noexcept { return buffers_.free_count(); }

 private:
  void give_back(Buffer& buffer) noexcept override {
    buffer.region().remove_user();
    buffers_.take_back(buffer);
  }

  BufferStack buffers_;
  bool started_ = false;
};

}  // namespace offload::memory
