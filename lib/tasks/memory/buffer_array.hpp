#pragma once

#include <cstddef>

#include "kernels/tasks/buffer_array.hpp"
#include "memory/region.hpp"

namespace offload::memory {

/// The shape of an array of equal buffers.
struct ArrayShape {
  std::size_t element_size = 0;  ///< bytes
  std::size_t stride = 0;        ///< from one element to the next, bytes
  std::size_t count = 0;         ///< elements
};

/// An array of equal buffers in a region, which device code addresses by index. While it is started
/// the region cannot stop. The caller stops it only after the last kernel that uses the view. One
/// thread.
class BufferArray {
 public:
  /// `base`: the address of element 0. The region must outlive the array. Throws Error
  /// (invalid_value) for a shape that is empty, whose elements overlap, or that overflows.
  BufferArray(MemoryRegion& region, std::byte* base, ArrayShape shape);
  ~BufferArray();
  BufferArray& operator=(BufferArray&&) = delete;

  /// Throws Error: bad_state if it is started or the region is not; invalid_value unless all
  /// elements lie in one range of the region.
  void start();
  /// Throws Error (bad_state) if it is not started.
  void stop();

  /// The view for host and device code, valid until stop(). Throws Error (bad_state) if it is not
  /// started.
  [[nodiscard]] kernels::BufferArrayView view() const;
  /// The same with the keys of `registrar`'s card, for elements that device code posts to it
  /// (kernels/rdma_tasks/buffers.hpp). Throws Error: bad_state, not_found for a registrar that is
  /// not the region's.
  [[nodiscard]] kernels::BufferArrayView view(const Registrar& registrar) const;

  [[nodiscard]] bool started() const noexcept { return started_; }

 private:
  MemoryRegion* region_;
  std::byte* base_;
  ArrayShape shape_;
  std::size_t length_;  ///< of all elements, bytes
  bool started_ = false;
};

}  // namespace offload::memory
