#include "copy/memory_copy_context.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace offload::copy {

MemoryCopyContext::MemoryCopyContext(std::string name) : CopyContext(std::move(name)) {}

/// Notes how many bytes of a task were copied.
core::Status MemoryCopyContext::take(CopyTask& task) noexcept {
  note_of(task) = 0;
  return {};
}

bool MemoryCopyContext::on_poll(std::size_t most) {
  std::size_t room = kBytesAtOnce;
  bool worked = false;
  while (most != 0 && room != 0) {
    CopyTask* const task = first();
    if (task == nullptr) break;
    worked = true;
    std::size_t& copied = note_of(*task);
    const std::size_t size = std::min(room, task->source.size() - copied);
    if (size != 0) {
      std::memcpy(task->destination.data() + copied, task->source.data() + copied, size);
    }
    copied += size;
    room -= size;
    if (copied != task->source.size()) break;
    --most;
    complete(*task, {});
  }
  return worked;
}

}  // namespace offload::copy
