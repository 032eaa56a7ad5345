#pragma once

#include "kernels/rdma/wqe.hpp"
#include "kernels/tasks/buffer_array.hpp"

/// Elements of a buffer array as the operands of RDMA operations. An array of the peer's memory has
/// the peer's addresses and key.
namespace offload::kernels::rdma {

/// All of an element, or its first `length` bytes; no buffer for an element that is not there.
OFFLOAD_HOST_DEVICE inline LocalBuffer local_buffer(const BufferElement& element,
                                                    std::uint64_t length = ~0ULL) {
  constexpr std::uint64_t kMost = 1ULL << 31;  // of a message
  std::uint64_t bytes = length < element.length ? length : element.length;
  if (bytes > kMost) bytes = kMost;
  return {reinterpret_cast<std::uint64_t>(element.address), static_cast<std::uint32_t>(bytes),
          element.lkey};
}

OFFLOAD_HOST_DEVICE inline RemotePointer remote_pointer(const BufferElement& element) {
  return {reinterpret_cast<std::uint64_t>(element.address), element.rkey};
}

}  // namespace offload::kernels::rdma
