#include "tasks/memory/buffer.hpp"

namespace offload::memory {

bool Buffer::append_chain(BufferRef& tail) noexcept {
  // Two different heads belong to different lists, so no list can become a ring.
  if (!tail || !is_head() || !tail->is_head() || tail.get() == this) return false;
  Buffer* last = this;
  while (last->next_ != nullptr) last = last->next_;
  last->next_ = std::exchange(tail.buffer_, nullptr);
  last->next_->has_former_ = true;
  return true;
}

BufferRef Buffer::unlink(const Buffer& element) noexcept {
  if (!is_head()) return {};
  Buffer* former = this;
  while (former != nullptr && former->next_ != &element) former = former->next_;
  if (former == nullptr) return {};
  BufferRef rest(std::exchange(former->next_, nullptr));
  rest->has_former_ = false;
  return rest;
}

std::size_t Buffer::element_count() const noexcept {
  std::size_t count = 0;
  for (const Buffer* buffer = this; buffer != nullptr; buffer = buffer->next_) ++count;
  return count;
}

std::size_t Buffer::length_of_list() const noexcept {
  std::size_t length = 0;
  for (const Buffer* buffer = this; buffer != nullptr; buffer = buffer->next_) {
    length += buffer->data_length_;
  }
  return length;
}

bool Buffer::any_at(Location location) const noexcept {
  for (const Buffer* buffer = this; buffer != nullptr; buffer = buffer->next_) {
    if (buffer->memory().location == location) return true;
  }
  return false;
}

bool Buffer::fits(std::size_t most_elements) const noexcept {
  const Buffer* buffer = this;
  for (; buffer != nullptr && most_elements != 0; --most_elements) buffer = buffer->next_;
  return buffer == nullptr;
}

void BufferRef::give_back(Buffer* buffer) noexcept {
  do {
    Buffer* const next = std::exchange(buffer->next_, nullptr);
    if (next != nullptr) next->has_former_ = false;
    if (buffer->owner_ != nullptr) buffer->owner_->give_back(*buffer);
    buffer = next;
  } while (buffer != nullptr && --buffer->references_ == 0);
}

}  // namespace offload::memory
