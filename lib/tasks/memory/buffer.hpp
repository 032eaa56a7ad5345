#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "memory/region.hpp"

namespace offload::memory {

class Buffer;
class BufferRef;

/// The inventory or pool that a buffer belongs to. give_back() is called when the last reference to
/// a buffer ends.
class BufferOwner {
 public:
  virtual void give_back(Buffer& buffer) noexcept = 0;

 protected:
  ~BufferOwner() = default;
};

/// A descriptor of a piece of a started region (its dataroom), and of where the data in it is:
///
///   address                                        address + length
///   | headroom      | data             | tailroom  |
///
/// A source is read from data(). A destination is written to tailroom() and then append()ed.
/// Buffers can be linked to a list (a chain), which describes scattered data. An inventory or pool
/// owns the buffers; a buffer is in use as long as it has a BufferRef. Data path, one thread:
/// nothing here allocates; an operation that does not fit changes nothing and returns false.
///
/// The spans of a range at Location::device are device addresses: this process must not dereference
/// them. The spans of a region without local_write must not be written.
class Buffer {
 public:
  Buffer& operator=(Buffer&&) = delete;

  [[nodiscard]] MemoryRegion& region() const noexcept { return *region_; }
  /// The index of the range in its region, as MemoryRegion::key() takes it.
  [[nodiscard]] std::size_t range() const noexcept { return range_; }
  /// The range itself.
  [[nodiscard]] const Range& memory() const noexcept { return region_->ranges()[range_]; }

  /// The whole dataroom.
  [[nodiscard]] std::span<std::byte> dataroom() const noexcept { return {address_, length_}; }
  [[nodiscard]] std::span<std::byte> headroom() const noexcept { return {address_, data_offset_}; }
  [[nodiscard]] std::span<std::byte> data() const noexcept {
    return {address_ + data_offset_, data_length_};
  }
  [[nodiscard]] std::span<std::byte> tailroom() const noexcept {
    return dataroom().subspan(data_offset_ + data_length_);
  }

  /// Makes `length` bytes at `offset` of the dataroom the data.
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
  /// Drops the data: the whole dataroom is tailroom.
  void reset() noexcept { data_offset_ = data_length_ = 0; }

  /// The next buffer of the list, null at its end.
  [[nodiscard]] Buffer* next() const noexcept { return next_; }
  /// Returns whether it is the first of its list, or in no list.
  [[nodiscard]] bool is_head() const noexcept { return !has_former_; }

  /// Appends the list that `tail` heads to this one; both must be heads of different lists. Moves
  /// the reference out of `tail` into the list: each buffer holds a reference to the next.
  [[nodiscard]] bool append_chain(BufferRef& tail) noexcept;
  /// Cuts the list that this one heads before `element`, and returns the list's reference to
  /// `element`; null if `element` does not follow this buffer.
  [[nodiscard]] BufferRef unlink(const Buffer& element) noexcept;

  /// The number of buffers from this one to the end of the list.
  [[nodiscard]] std::size_t element_count() const noexcept;
  /// The bytes of data in them.
  [[nodiscard]] std::size_t total_length() const noexcept {
    return next_ == nullptr ? data_length_ : length_of_list();
  }
  /// Returns whether there are at most `most_elements`, such as the max_sge of a device.
  [[nodiscard]] bool fits(std::size_t most_elements) const noexcept;
  /// Returns whether the processor can access all of them: none is in memory of a device, of
  /// another process or of a peer.
  [[nodiscard]] bool all_in_host() const noexcept {
    const Buffer* buffer = this;
    while (buffer != nullptr && is_in_host(buffer->memory().location)) buffer = buffer->next_;
    return buffer == nullptr;
  }
  /// Returns whether one of them is at `location`.
  [[nodiscard]] bool any_at(Location location) const noexcept;

  [[nodiscard]] std::uint32_t references() const noexcept { return references_; }

  // For a user who counts references of its own without a BufferRef, as programs in C do: those
  // that tasks hold are counted apart, so that the user cannot drop them.
  void hold() noexcept { ++held_; }
  void unhold() noexcept { --held_; }
  /// The references that are not held by tasks.
  [[nodiscard]] std::uint32_t own_references() const noexcept { return references_ - held_; }

 private:
  friend class BufferRef;
  friend class BufferStack;

  [[nodiscard]] std::size_t length_of_list() const noexcept;

  MemoryRegion* region_ = nullptr;
  BufferOwner* owner_ = nullptr;  ///< null once the owner is destroyed
  std::byte* address_ = nullptr;
  std::size_t length_ = 0;
  std::size_t data_offset_ = 0;
  std::size_t data_length_ = 0;
  Buffer* next_ = nullptr;  ///< in the list, or in the stack of free buffers
  std::size_t range_ = 0;
  std::uint32_t references_ = 0;
  std::uint32_t held_ = 0;  ///< of them, by tasks
  bool has_former_ = false;
};

/// A counted reference to a buffer. When the last one ends, the buffer returns to its owner and
/// drops its own reference to the next buffer of its list.
class BufferRef {
 public:
  BufferRef() noexcept = default;
  BufferRef(const BufferRef& other) noexcept : buffer_(other.buffer_) {
    if (buffer_ != nullptr) ++buffer_->references_;
  }
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef() { reset(); }

  /// Another reference to a buffer that is in use.
  [[nodiscard]] static BufferRef share(Buffer& buffer) noexcept {
    ++buffer.references_;
    return BufferRef(&buffer);
  }
  /// Takes over a reference that release() gave up.
  [[nodiscard]] static BufferRef adopt(Buffer& buffer) noexcept { return BufferRef(&buffer); }
  /// Gives up the reference, which stays counted: for an owner that cannot hold a BufferRef.
  [[nodiscard]] Buffer* release() noexcept { return std::exchange(buffer_, nullptr); }

  /// Drops the reference.
  void reset() noexcept {
    Buffer* const buffer = std::exchange(buffer_, nullptr);
    if (buffer != nullptr && --buffer->references_ == 0) give_back(buffer);
  }

  [[nodiscard]] Buffer* get() const noexcept { return buffer_; }
  Buffer* operator->() const noexcept { return buffer_; }
  Buffer& operator*() const noexcept { return *buffer_; }
  explicit operator bool() const noexcept { return buffer_ != nullptr; }

 private:
  friend class Buffer;
  friend class BufferStack;
  /// Adopts a reference that is already counted.
  explicit BufferRef(Buffer* counted) noexcept : buffer_(counted) {}
  /// Returns a buffer without references to its owner, and what it alone referred to.
  static void give_back(Buffer* buffer) noexcept;

  Buffer* buffer_ = nullptr;
};

}  // namespace offload::memory
