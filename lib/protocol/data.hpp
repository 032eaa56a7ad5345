#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/bytes.hpp"

/// What a message of a channel looks like on a connection that carries it (docs/wire-protocol.md):
///   u64 sequence | u32 length | u32 status | `length` bytes of payload
/// all big endian. Requests and responses have one form; status is 0 in a request.
namespace offload::protocol {

inline constexpr std::size_t kDataHeaderSize = 16;

struct DataHeader {
  std::uint64_t sequence = 0;  ///< of the channel since its worker attached; a response's is its
                               ///< request's
  std::uint32_t length = 0;
  std::uint32_t status = 0;  ///< kernels::Status

  /// `from` holds at least kDataHeaderSize bytes.
  static DataHeader load(const std::byte* from) noexcept {
    return {load_big_endian<std::uint64_t>(from), load_big_endian<std::uint32_t>(from + 8),
            load_big_endian<std::uint32_t>(from + 12)};
  }
  /// `to` has room for kDataHeaderSize bytes.
  void store(std::byte* to) const noexcept {
    store_big_endian(to, sequence);
    store_big_endian(to + 8, length);
    store_big_endian(to + 12, status);
  }
};

}  // namespace offload::protocol
