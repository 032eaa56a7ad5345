#pragma once

#include <cstddef>

#include "protocol/bytes.hpp"
#include "protocol/frame.hpp"

/// The format of a UDP datagram between a client and a worker (docs/reference/wire-protocol.md):
///   u64 sequence (big endian) | one frame (frame.hpp): a request, its response or an error
/// The sequence is the client's own; an answer has that of its request.
namespace offload::protocol {

inline constexpr std::size_t kSequenceSize = 8;
/// The size of a datagram without the payload of its frame.
inline constexpr std::size_t kDatagramHeaderSize = kSequenceSize + kFrameHeaderSize;

}  // namespace offload::protocol
