#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "tasks/copy/copy_context.hpp"
#include "tasks/copy/piece_cursor.hpp"

namespace offload::copy {

/// A copy context that copies on the thread of its engine, kBytesAtOnce a turn, so that others on
/// the engine get theirs. Memory at Location::device is not_supported: the processor does not reach
/// it.
class MemoryCopyContext final : public CopyContext {
 public:
  /// Some tens of microseconds of copying: how long others on the engine may wait.
  static constexpr std::size_t kBytesAtOnce = 256UL * 1024;
  /// The submission reads each buffer of a list, and must stay short.
  static constexpr std::size_t kMostElements = 64;

  explicit MemoryCopyContext(std::string name = "memory copy")
      : CopyContext(std::move(name), kMostElements) {}

 private:
  Step on_stop() noexcept override {
    cursor_ = {};
    return Step::done;
  }
  core::Status take(CopyTask& task) noexcept override {
    if (task.source->all_in_host() && task.destination->all_in_host()) return {};
    return core::ErrorCode::not_supported;
  }
  bool on_poll(std::size_t most) override {
    std::size_t room = kBytesAtOnce;
    bool worked = false;
    for (; most != 0 && room != 0; --most) {
      CopyTask* const task = first();
      if (task == nullptr) break;
      worked = true;
      if (!cursor_.is_set()) {
        cursor_ = {*task->source, *task->destination};
        copied_ = 0;
      }
      const std::size_t done = is_as_planned(*task) ? copy_piece(*task, room) : 0;
      room -= done;
      const bool all = copied_ == plan_of(*task).length;
      if (!all && done != 0) break;
      cursor_ = {};
      finish(*task, all ? core::Status() : core::ErrorCode::bad_state);  // the lists have changed
    }
    return worked;
  }

  /// Copies up to `most` bytes of the first task. Returns how many.
  std::size_t copy_piece(CopyTask& task, std::size_t most) noexcept {
    const std::size_t wanted = std::min(most, plan_of(task).length - copied_);
    std::size_t done = 0;
    while (done < wanted) {
      const Piece piece = cursor_.next(wanted - done);
      if (piece.length == 0) break;  // the source became shorter
      std::memcpy(piece.to, piece.from, piece.length);
      done += piece.length;
    }
    copied_ += done;
    return done;
  }

  // Progress of the first task in flight.
  PieceCursor cursor_;      ///< not set: not begun
  std::size_t copied_ = 0;  ///< bytes
};

}  // namespace offload::copy
