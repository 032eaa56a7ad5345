#pragma once

#include <cstddef>

#include "kernels/buffer_array.hpp"
#include "memory/region.hpp"

namespace offload::memory {

/// The measures of an array of equal buffers.
struct ArrayShape {
  std::size_t element_size = 0;  ///< bytes
  std::size_t stride = 0;        ///< from one element to the next, bytes
  std::size_t count = 0;         ///< elements
};

/// Part of a region as an array of equal buffers that device code picks from by number. While
/// started it keeps the region from being stopped; only the caller knows when the last kernel that
/// was given the view has ended. One thread.
class BufferArray {
 public:
  /// Elements from `base` on. The region outlives the array. Throws Error (invalid_value) for a
  /// shape that is empty, whose elements overlap, or that no memory could hold.
  BufferArray(MemoryRegion& region, std::byte* base, ArrayShape shape);
  ~BufferArray();
  BufferArray(const BufferArray&) = delete;
  BufferArray& operator=(const BufferArray&) = delete;

  /// Throws Error: bad_state, if the region is stopped too; invalid_value unless all elements lie
  /// in one range of the region.
  void start();
  /// Throws Error (bad_state).
  void stop();

  /// For host and device code, valid until stop. Throws Error (bad_state).
  [[nodiscard]] kernels::BufferArray view() const;

  [[nodiscard]] bool started() const noexcept { return started_; }

 private:
  MemoryRegion* region_;
  std::byte* base_;
  ArrayShape shape_;
  std::size_t length_;  ///< of all elements, bytes
  bool started_ = false;
};

}  // namespace offload::memory
