#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/bytes.hpp"

/// The format of the contents of a channel's slots on a network connection
/// (docs/reference/wire-protocol.md):
///   u64 sequence | u32 length | u16 count | u16 status | `length` bytes of content
/// all big endian except the content, which is as in the slot. Requests and responses have the same
/// format; the status of a request is 0.
namespace offload::protocol {

inline constexpr std::size_t kDataHeaderSize = 16;

/// The header of a content.
struct DataHeader {
  std::uint64_t sequence = 0;  ///< counts request slots since the worker attached; a response has
                               ///< the sequence of its request
  std::uint32_t length = 0;    ///< of the content, bytes
  std::uint16_t count = 0;     ///< messages of a batch; 0: the content is one message
  std::uint16_t status = 0;    ///< kernels::ResponseStatus

  /// `from` holds at least kDataHeaderSize bytes.
  static DataHeader load(const std::byte* from) noexcept {
    return {load_big_endian<std::uint64_t>(from), load_big_endian<std::uint32_t>(from + 8),
            load_big_endian<std::uint16_t>(from + 12), load_big_endian<std::uint16_t>(from + 14)};
  }
  /// `to` has room for kDataHeaderSize bytes.
  void store(std::byte* to) const noexcept {
    store_big_endian(to, sequence);
    store_big_endian(to + 8, length);
    store_big_endian(to + 12, count);
    store_big_endian(to + 14, status);
  }
};

}  // namespace offload::protocol
