#include "copy/memory_copy_context.hpp"

#include <algorithm>
#include <cstring>

namespace offload::copy {
namespace {

using memory::Buffer;

bool all_reachable(const Buffer& head) {
  for (const Buffer* buffer = &head; buffer != nullptr; buffer = buffer->next()) {
    if (buffer->region().ranges()[buffer->range()].location == memory::Location::device) {
      return false;
    }
  }
  return true;
}

}  // namespace

core::Status MemoryCopyContext::take(CopyTask& task) noexcept {
  if (all_reachable(*task.source) && all_reachable(*task.destination)) return {};
  return core::ErrorCode::not_supported;
}

bool MemoryCopyContext::on_poll(std::size_t most) {
  std::size_t room = kBytesAtOnce;
  bool worked = false;
  for (; most != 0 && room != 0; --most) {
    CopyTask* const task = first();
    if (task == nullptr) break;
    worked = true;
    if (element_ == nullptr) {
      element_ = task->source.get();
      offset_ = copied_ = 0;
    }
    room -= copy_piece(*task, room);
    if (copied_ != plan_of(*task).length) break;
    element_ = nullptr;
    finish(*task, {});
  }
  return worked;
}

std::size_t MemoryCopyContext::copy_piece(CopyTask& task, std::size_t most) noexcept {
  const Plan& plan = plan_of(task);
  const std::size_t wanted = std::min(most, plan.length - copied_);
  std::size_t done = 0;
  while (done < wanted) {
    const auto data = element_->data().subspan(offset_);
    const std::size_t size = std::min(wanted - done, data.size());
    if (size != 0) std::memcpy(plan.target + copied_ + done, data.data(), size);
    done += size;
    offset_ += size;
    if (size == data.size() && done < wanted) {  // there is more to come, so there is a next
      element_ = element_->next();
      offset_ = 0;
    }
  }
  copied_ += done;
  return done;
}

}  // namespace offload::copy
