#pragma once

#include <cstdint>

#include "kernels/rdma/cqe.hpp"

namespace offload::kernels::rdma {

/// The first error of a queue, as one word, so that threads can share it, and pass it to the host.
/// Entries posted after it are flushed.
struct QueueError {
  std::uint32_t word = 0;  ///< u16 counter, u8 vendor, u8 syndrome; 0: none

  OFFLOAD_HOST_DEVICE static QueueError of(const Completion& completion) {
    return {static_cast<std::uint32_t>(completion.counter) << 16 |
            static_cast<std::uint32_t>(completion.vendor) << 8 |
            static_cast<std::uint32_t>(completion.syndrome)};
  }
  OFFLOAD_HOST_DEVICE explicit operator bool() const { return word != 0; }
  [[nodiscard]] OFFLOAD_HOST_DEVICE Syndrome syndrome() const {
    return static_cast<Syndrome>(word & 0xffU);
  }
  /// The card's own number for it.
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint8_t vendor() const {
    return static_cast<std::uint8_t>(word >> 8 & 0xffU);
  }
  /// The lower bits of the position of the entry that failed.
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint16_t counter() const {
    return static_cast<std::uint16_t>(word >> 16);
  }
};

/// Why, for a log. For the host.
inline const char* words_of(Syndrome syndrome) {
  switch (syndrome) {
    case Syndrome::none: return "no error";
    case Syndrome::local_length: return "the message does not fit its local buffers";
    case Syndrome::local_queue_operation: return "the entry is not one that the queue may have";
    case Syndrome::local_protection: return "a local buffer is not within its key's memory";
    case Syndrome::flushed: return "flushed, as the queue was in error before";
    case Syndrome::bad_response: return "the response makes no sense";
    case Syndrome::local_access: return "local memory does not allow the access";
    case Syndrome::remote_invalid_request: return "the peer finds the request invalid";
    case Syndrome::remote_access: return "remote memory does not allow the access";
    case Syndrome::remote_operation: return "the peer could not complete the operation";
    case Syndrome::transport_retries: return "the peer does not answer";
    case Syndrome::receiver_not_ready: return "the peer has no receive posted";
    case Syndrome::remote_aborted: return "the peer aborted the operation";
  }
  return "an unknown error";
}

}  // namespace offload::kernels::rdma
