#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "memory/region.hpp"

namespace offload::memory {

class Buffer;
class BufferRef;

/// Where a buffer goes when its last reference is gone: the inventory or pool it is of.
class BufferOwner {
 public:
  virtual void give_back(Buffer& buffer) noexcept = 0;

 protected:
  ~BufferOwner() = default;
};

/// Describes part of a started region, its dataroom, and where in it the data is:
///
///   address                                        address + length
///   | headroom      | data             | tailroom  |
///
/// A source is read from data(). A destination is written into tailroom() and appended to.
/// Buffers can be linked to a list (chain), which is scattered data in one piece. An inventory or
/// pool owns the buffers; BufferRef says how long one is out. Data path, one thread: nothing here
/// allocates, and what cannot be done changes nothing and returns false.
///
/// Spans of a range at Location::device are addresses for a device, not for this process, and those
/// of a region without local_write are for reading.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] MemoryRegion& region() const noexcept { return *region_; }
  /// The number of the range in its region, as for MemoryRegion::key.
  [[nodiscard]] std::size_t range() const noexcept { return range_; }

  /// The whole dataroom.
  [[nodiscard]] std::span<std::byte> dataroom() const noexcept { return {address_, length_}; }
  [[nodiscard]] std::span<std::byte> headroom() const noexcept { return {address_, data_offset_}; }
  [[nodiscard]] std::span<std::byte> data() const noexcept {
    return {address_ + data_offset_, data_length_};
  }
  [[nodiscard]] std::span<std::byte> tailroom() const noexcept {
    return dataroom().subspan(data_offset_ + data_length_);
  }

  /// Makes `length` bytes from `offset` of the dataroom on the data.
  [[nodiscard]] bool set_data(std::size_t offset, std::size_t length) noexcept {
    if (offset > length_ || length > length_ - offset) return false;
    data_offset_ = offset;
    data_length_ = length;
    return true;
  }
  /// The first `count` bytes of the tailroom become the end of the data.
  [[nodiscard]] bool append(std::size_t count) noexcept {
    if (count > tailroom().size()) return false;
    data_length_ += count;
    return true;
  }
  /// The last `count` bytes of the headroom become the front of the data.
  [[nodiscard]] bool prepend(std::size_t count) noexcept {
    if (count > data_offset_) return false;
    data_offset_ -= count;
    data_length_ += count;
    return true;
  }
  /// The first `count` bytes of the data become headroom.
  [[nodiscard]] bool consume_front(std::size_t count) noexcept {
    if (count > data_length_) return false;
    data_offset_ += count;
    data_length_ -= count;
    return true;
  }
  /// The last `count` bytes of the data become tailroom.
  [[nodiscard]] bool trim(std::size_t count) noexcept {
    if (count > data_length_) return false;
    data_length_ -= count;
    return true;
  }
  /// No data; the whole dataroom is tailroom.
  void reset() noexcept { data_offset_ = data_length_ = 0; }

  /// The following buffer of the list, null at its end.
  [[nodiscard]] Buffer* next() const noexcept { return next_; }
  /// The first of its list, or not in one.
  [[nodiscard]] bool is_head() const noexcept { return !has_former_; }

  /// Puts the list that `tail` heads behind the end of this one; both must be heads, of different
  /// lists. The list takes over the reference, which is null then: each buffer holds the next.
  [[nodiscard]] bool append_chain(BufferRef& tail) noexcept;
  /// Cuts the list, which this one heads, before `element`, and returns what the list held of it;
  /// null if `element` does not follow here.
  [[nodiscard]] BufferRef unlink(const Buffer& element) noexcept;

  /// Buffers from this one to the end of the list.
  [[nodiscard]] std::size_t element_count() const noexcept;
  /// Bytes of data in them.
  [[nodiscard]] std::size_t total_length() const noexcept;
  /// Whether they are at most `most_elements`: what a device can gather or scatter at once.
  [[nodiscard]] bool fits(std::size_t most_elements) const noexcept;

  [[nodiscard]] std::uint32_t references() const noexcept { return references_; }

 private:
  friend class BufferRef;
  friend class BufferStack;

  MemoryRegion* region_ = nullptr;
  BufferOwner* owner_ = nullptr;  ///< null if the owner ended first
  std::byte* address_ = nullptr;
  std::size_t length_ = 0;
  std::size_t data_offset_ = 0;
  std::size_t data_length_ = 0;
  Buffer* next_ = nullptr;  ///< of the list, or of those that are free
  std::size_t range_ = 0;
  std::uint32_t references_ = 0;
  bool has_former_ = false;
};

/// Keeps a buffer from going back to its owner; a copy is one more reference. When the last one is
/// gone the buffer goes back, and gives up the one that it had on the next of its list.
class BufferRef {
 public:
  BufferRef() noexcept = default;
  BufferRef(const BufferRef& other) noexcept : buffer_(other.buffer_) {
    if (buffer_ != nullptr) ++buffer_->references_;
  }
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  /// By value: of a copy or of what was moved.
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef() { reset(); }

  /// Lets go now.
  void reset() noexcept;

  [[nodiscard]] Buffer* get() const noexcept { return buffer_; }
  Buffer* operator->() const noexcept { return buffer_; }
  Buffer& operator*() const noexcept { return *buffer_; }
  explicit operator bool() const noexcept { return buffer_ != nullptr; }

 private:
  friend class Buffer;
  friend class BufferStack;
  /// Takes over a reference that is counted already.
  explicit BufferRef(Buffer* counted) noexcept : buffer_(counted) {}

  Buffer* buffer_ = nullptr;
};

}  // namespace offload::memory
