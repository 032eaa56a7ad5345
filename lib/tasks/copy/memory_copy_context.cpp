#include "tasks/copy/memory_copy_context.hpp"

#include <algorithm>
#include <cstring>

namespace offload::copy {

core::Status MemoryCopyContext::take(CopyTask& task) noexcept {
  if (task.source->all_in_host() && task.destination->all_in_host()) return {};
  return core::ErrorCode::not_supported;
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

std::size_t MemoryCopyContext::copy_piece(CopyTask& task, std::size_t most) noexcept {
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

}  // namespace offload::copy
