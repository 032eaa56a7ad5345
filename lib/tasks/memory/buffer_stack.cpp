#include "tasks/memory/buffer_stack.hpp"

#include <limits>
#include <new>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace offload::memory {
namespace {

std::unique_ptr<Buffer[]> make_buffers(std::size_t count) {
  if (count == 0)
    throw core::Error(core::ErrorCode::invalid_value, "at least one buffer is needed");
  constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(Buffer);
  std::unique_ptr<Buffer[]> buffers(count <= kMost ? new (std::nothrow) Buffer[count] : nullptr);
  if (!buffers) {
    throw core::Error(core::ErrorCode::no_memory,
                      "cannot allocate " + std::to_string(count) + " buffers");
  }
  return buffers;
}

}  // namespace

BufferStack::BufferStack(BufferOwner& owner, std::size_t count)
    : buffers_(make_buffers(count)), count_(count) {
  // Backwards, so that the first buffer is on top.
  for (std::size_t i = count; i-- > 0;) {
    buffers_[i].owner_ = &owner;
    take_back(buffers_[i]);
  }
}

BufferStack::~BufferStack() {
  if (out() == 0) return;
  for (std::size_t i = 0; i < count_; ++i) buffers_[i].owner_ = nullptr;
  static_cast<void>(buffers_.release());
}

void BufferStack::place(Buffer& buffer, MemoryRegion& region, std::size_t range,
                        std::span<std::byte> dataroom) noexcept {
  buffer.region_ = &region;
  buffer.range_ = range;
  buffer.address_ = dataroom.data();
  buffer.length_ = dataroom.size();
  buffer.reset();
}

BufferRef BufferStack::lend() noexcept {
  if (free_ == nullptr) return {};
  Buffer* const buffer = std::exchange(free_, free_->next_);
  buffer->next_ = nullptr;
  buffer->references_ = 1;
  --free_count_;
  return BufferRef(buffer);
}

void BufferStack::take_back(Buffer& buffer) noexcept {
  buffer.next_ = std::exchange(free_, &buffer);
  ++free_count_;
}

}  // namespace offload::memory
