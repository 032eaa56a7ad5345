#include "tasks/copy/copy_context.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

namespace offload::copy {
namespace {

using core::ErrorCode;
using memory::Buffer;

/// Returns whether the two share a byte.
bool overlap(std::span<const std::byte> one, std::span<const std::byte> other) {
  // std::less orders pointers into different objects too.
  const std::less<> before;
  return !one.empty() && !other.empty() && before(one.data(), other.data() + other.size()) &&
         before(other.data(), one.data() + one.size());
}

/// `target`: a part of the tailroom of `of`. Addresses of different processes do not overlap.
bool list_overlaps(const Buffer& head, const Buffer& of, std::span<const std::byte> target) {
  for (const Buffer* buffer = &head; buffer != nullptr; buffer = buffer->next()) {
    if (buffer->memory().process == of.memory().process && overlap(buffer->data(), target)) {
      return true;
    }
  }
  return false;
}

/// A number of where the tailrooms of a list are (FNV-1a): another one if any has changed.
std::uint64_t shape_of(const Buffer& destination) noexcept {
  std::uint64_t shape = 0xcbf2'9ce4'8422'2325;
  for (const Buffer* buffer = &destination; buffer != nullptr; buffer = buffer->next()) {
    const auto room = buffer->tailroom();
    for (const std::uint64_t word :
         {reinterpret_cast<std::uint64_t>(room.data()), static_cast<std::uint64_t>(room.size())}) {
      shape = (shape ^ word) * 0x100'0000'01b3;
    }
  }
  return shape;
}

/// Returns whether `length` bytes of `source` can be written to `destination`.
core::Status check_target(const Buffer& source, const Buffer& destination, std::size_t length) {
  std::size_t left = length;
  for (const Buffer* buffer = &destination; buffer != nullptr; buffer = buffer->next()) {
    if (!memory::includes(buffer->region().access(), memory::Access::local_write)) {
      return ErrorCode::not_permitted;
    }
    const auto room = buffer->tailroom();
    const auto part = room.first(std::min(left, room.size()));
    if (list_overlaps(source, *buffer, part)) return ErrorCode::invalid_value;
    left -= part.size();
  }
  return left == 0 ? core::Status() : ErrorCode::invalid_value;
}

}  // namespace

core::Status CopyContext::on_submit(progress::Task& task) noexcept {
  auto& copy = static_cast<CopyTask&>(task);
  if (!copy.source || !copy.destination) return ErrorCode::invalid_value;
  const Buffer& destination = *copy.destination;
  if (!copy.source->fits(most_elements_) || !destination.fits(most_elements_)) {
    return ErrorCode::not_supported;
  }
  const std::size_t length = copy.source->total_length();
  const core::Status status = check_target(*copy.source, destination, length);
  if (!status.ok()) return status;
  copy.plan_ = {length, shape_of(destination), 0};
  return take(copy);
}

bool CopyContext::is_as_planned(const CopyTask& task) noexcept {
  return shape_of(*task.destination) == task.plan_.shape;
}

void CopyContext::finish(CopyTask& task, core::Status status) noexcept {
  // A destination that changed meanwhile has the copied bytes elsewhere than behind its data.
  if (status.ok() && !is_as_planned(task)) status = ErrorCode::bad_state;
  if (status.ok()) {
    std::size_t left = task.plan_.length;
    for (Buffer* buffer = task.destination.get(); left != 0; buffer = buffer->next()) {
      const std::size_t part = std::min(left, buffer->tailroom().size());
      static_cast<void>(buffer->append(part));
      left -= part;
    }
  }
  complete(task, status);
}

}  // namespace offload::copy
