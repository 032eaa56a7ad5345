#pragma once

#include <cstdint>

#include "kernels/platform.hpp"

namespace offload::kernels {

/// An element of a BufferArrayView.
struct BufferElement {
  std::uint8_t* address;   ///< null: there is no such element
  std::uint64_t length;    ///< bytes
  std::uint32_t lkey = 0;  ///< of a network card, if the array has one's
  std::uint32_t rkey = 0;
};

/// An array of buffers of equal size in one piece of memory, for host and device. Plain numbers,
/// passed to a kernel by value; tasks/memory/buffer_array.hpp makes one whose elements all lie in
/// the memory of a region. The reader must be able to reach that memory.
struct BufferArrayView {
  std::uint8_t* base;          ///< of element 0
  std::uint64_t element_size;  ///< bytes
  std::uint64_t stride;        ///< from one element to the next, bytes; not below element_size
  std::uint64_t count;         ///< elements
  std::uint32_t lkey = 0;      ///< of all elements: they lie in one registered range
  std::uint32_t rkey = 0;

  /// Any thread. An index out of range yields null and no length, so it may be untrusted.
  OFFLOAD_HOST_DEVICE BufferElement at(std::uint64_t index) const {
    if (index >= count) return {nullptr, 0};
    return {base + index * stride, element_size, lkey, rkey};
  }
};

}  // namespace offload::kernels
