#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "tasks/copy/copy_context.hpp"
#include "tasks/copy/piece_cursor.hpp"

namespace offload::copy {

/// A copy context that copies on the thread of its engine, kBytesAtOnce a turn, so that others on
/// the engine get theirs. Memory at Location::device is not_supported unless the owner can copy it,
/// as the processor does not reach it; a copy between two other processes is neither. A task fails
/// with the errors of memory::copy_bytes() if memory of another process is not accessible.
class MemoryCopyContext final : public CopyContext {
 public:
  /// Some tens of microseconds of copying: how long others on the engine may wait.
  static constexpr std::size_t kBytesAtOnce = 256UL * 1024;
  /// The submission reads each buffer of a list, and must stay short.
  static constexpr std::size_t kMostElements = 64;

  /// Copies bytes of which a device has some for itself, and waits for the end.
  using DeviceCopy = core::Status (*)(void* to, const void* from, std::size_t length) noexcept;

  /// `device_copy`: null if memory of devices is not supported.
  explicit MemoryCopyContext(std::string name = "memory copy", DeviceCopy device_copy = nullptr)
      : CopyContext(std::move(name), kMostElements), device_copy_(device_copy) {}

 private:
  Step on_stop() noexcept override {
    cursor_ = {};
    return Step::done;
  }
  core::Status take(CopyTask& task) noexcept override;
  bool on_poll(std::size_t most) override;

  /// Copies up to `most` bytes of the first task. Returns how many: fewer if it failed with error_,
  /// if its lists have become shorter, or at its end.
  std::size_t copy_piece(CopyTask& task, std::size_t most) noexcept;

  DeviceCopy device_copy_;
  // Progress of the first task in flight.
  PieceCursor cursor_;      ///< not set: not begun
  std::size_t copied_ = 0;  ///< bytes
  core::Status error_;
};

}  // namespace offload::copy
