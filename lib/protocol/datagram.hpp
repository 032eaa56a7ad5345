#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/bytes.hpp"
#include "protocol/frame.hpp"

/// What a UDP datagram between a client and a worker carries (docs/reference/wire-protocol.md):
///   u64 sequence (big endian) | one frame (frame.hpp): a request, its response or an error
/// The sequence is the client's own; an answer has that of its request.
namespace offload::protocol {

inline constexpr std::size_t kSequenceSize = 8;
/// Of a datagram beside the payload of its frame.
inline constexpr std::size_t kDatagramHeaderSize = kSequenceSize + kFrameHeaderSize;

}  // namespace offload::protocol
