#include "tasks/copy/memory_copy_context.hpp"

#include <algorithm>

#include "memory/process_memory.hpp"

namespace offload::copy {
namespace {

bool is_on_device(const memory::Range* range) noexcept {
  return range->location == memory::Location::device;
}

}  // namespace

core::Status MemoryCopyContext::take(CopyTask& task) noexcept {
  using memory::Location;
  const auto any_at = [&](Location location) {
    return task.source->any_at(location) || task.destination->any_at(location);
  };
  const bool on_device = any_at(Location::device);
  const bool unreachable = any_at(Location::peer) || (on_device && device_copy_ == nullptr);
  const bool elsewhere = on_device ? any_at(Location::process)
                                   : task.source->any_at(Location::process) &&
                                         task.destination->any_at(Location::process);
  return unreachable || elsewhere ? core::Status(core::ErrorCode::not_supported) : core::Status();
}

bool MemoryCopyContext::on_poll(std::size_t most) {
  std::size_t room = kBytesAtOnce;
  bool worked = false;
  for (; most != 0 && room != 0; --most) {
    CopyTask* const task = first();
    if (task == nullptr) break;
    worked = true;
    if (!cursor_.is_set()) {
      cursor_ = {*task->source, *task->destination};
      copied_ = 0;
      error_ = {};
    }
    const std::size_t done = is_as_planned(*task) ? copy_piece(*task, room) : 0;
    room -= done;
    const bool all = copied_ == plan_of(*task).length;
    if (!all && done != 0 && error_.ok()) break;
    cursor_ = {};
    // If there was no error, the lists have changed.
    finish(*task, all || !error_.ok() ? error_ : core::ErrorCode::bad_state);
  }
  return worked;
}

std::size_t MemoryCopyContext::copy_piece(CopyTask& task, std::size_t most) noexcept {
  const std::size_t wanted = std::min(most, plan_of(task).length - copied_);
  std::size_t done = 0;
  while (done < wanted) {
    const Piece piece = cursor_.next(wanted - done);
    if (piece.length == 0) break;  // the source became shorter
    if (is_on_device(piece.to_range) || is_on_device(piece.from_range)) {
      error_ = device_copy_(piece.to, piece.from, piece.length);
    } else {
      error_ = memory::copy_bytes({piece.to, piece.to_range}, {piece.from, piece.from_range},
                                  piece.length);
    }
    if (!error_.ok()) break;
    done += piece.length;
  }
  copied_ += done;
  return done;
}

}  // namespace offload::copy
