#pragma once

#include <vector>

#include "core/error.hpp"
#include "kernels/crc32c.hpp"
#include "protocol/bytes.hpp"
#include "protocol/envelope.hpp"
#include "tests/fuzz/input.hpp"

/// Anything, taken as a message in an envelope: it is refused with an Error of two kinds, or it is
/// exactly what encode() writes.
namespace offload::fuzz {

template <class Message>
void decode(const std::vector<std::byte>& bytes) {
  try {
    const auto message = Message::decode(bytes);
    require(message.encode() == bytes, "a description is what was decoded");
  } catch (const core::Error& error) {
    require(error.code() == core::ErrorCode::bad_message ||
                error.code() == core::ErrorCode::unsupported_version,
            "it is refused as a message");
  }
}

/// Magic, length and checksum, as a forger would.
inline void put_right(std::vector<std::byte>& bytes, std::uint32_t magic) {
  constexpr std::size_t kLengthAt = 6;
  if (bytes.size() < protocol::kEnvelopeHeader + protocol::kEnvelopeTrailer) return;
  protocol::store_big_endian(bytes.data(), magic);
  protocol::store_big_endian(bytes.data() + kLengthAt, static_cast<std::uint32_t>(bytes.size()));
  const std::size_t covered = bytes.size() - protocol::kEnvelopeTrailer;
  protocol::store_big_endian(
      bytes.data() + covered,
      kernels::crc32c(reinterpret_cast<const std::uint8_t*>(bytes.data()), covered));
}

/// Once as it is, and once put right.
template <class Message>
void run_enveloped(const protocol::Envelope& envelope, Input input) {
  std::vector<std::byte> bytes(input.rest().begin(), input.rest().end());
  decode<Message>(bytes);
  put_right(bytes, envelope.magic);
  decode<Message>(bytes);
}

}  // namespace offload::fuzz
