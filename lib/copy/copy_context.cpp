#include "copy/copy_context.hpp"

#include <functional>
#include <span>

namespace offload::copy {
namespace {

using core::ErrorCode;
using memory::Buffer;

/// Whether the two share a byte.
bool overlap(std::span<const std::byte> one, std::span<const std::byte> other) {
  // std::less orders pointers into different objects too.
  const std::less<> before;
  return !one.empty() && !other.empty() && before(one.data(), other.data() + other.size()) &&
         before(other.data(), one.data() + one.size());
}

bool list_overlaps(const Buffer& head, std::span<const std::byte> target) {
  for (const Buffer* buffer = &head; buffer != nullptr; buffer = buffer->next()) {
    if (overlap(buffer->data(), target)) return true;
  }
  return false;
}

}  // namespace

core::Status CopyContext::on_submit(progress::Task& task) noexcept {
  auto& copy = static_cast<CopyTask&>(task);
  if (!copy.source || !copy.destination) return ErrorCode::invalid_value;
  const Buffer& destination = *copy.destination;
  if (!copy.source->fits(most_elements_) || !destination.fits(1)) return ErrorCode::not_supported;
  if (!memory::includes(destination.region().access(), memory::Access::local_write)) {
    return ErrorCode::not_permitted;
  }
  const std::size_t length = copy.source->total_length();
  const auto room = destination.tailroom();
  if (length > room.size()) return ErrorCode::invalid_value;
  if (list_overlaps(*copy.source, room.first(length))) return ErrorCode::invalid_value;
  copy.plan_ = {room.data(), length};
  return take(copy);
}

void CopyContext::finish(CopyTask& task, core::Status status) noexcept {
  // A destination that changed meanwhile has the copied bytes elsewhere than behind its data.
  if (status.ok() && (task.destination->tailroom().data() != task.plan_.target ||
                      !task.destination->append(task.plan_.length))) {
    status = ErrorCode::bad_state;
  }
  complete(task, status);
}

}  // namespace offload::copy
