#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/rdma/wqe.hpp"

namespace offload::rdma::model {

/// A request of a card to another one, or to itself: a message or an operation on memory, or a part
/// of it.
struct Request {
  std::uint32_t to = 0;    ///< the peer's number
  std::uint32_t from = 0;  ///< that of the sender
  std::uint32_t psn = 0;   ///< counts the operations of a queue pair, 24 bits
  kernels::rdma::Opcode opcode{};
  bool solicited = false;
  /// All other parts have been carried out.
  bool is_last = true;
  std::uint32_t immediate = 0;
  kernels::rdma::RemotePointer remote{};  ///< of the whole
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint64_t total = 0;           ///< bytes of the whole
  std::uint64_t offset = 0;          ///< of this part
  std::uint64_t length = 0;          ///< of this part
  std::span<const std::byte> bytes;  ///< writes and sends
};

/// How the peer took a request.
enum class Answer : std::uint8_t {
  done,
  no_receive,       ///< try again later
  not_yet,          ///< writes that came before are not in memory; the same card only
  none,             ///< the peer is not there, or not for this sender
  invalid_request,  ///< these three are errors: the sender's queue pair fails
  no_access,
  failed,
};

}  // namespace offload::rdma::model
