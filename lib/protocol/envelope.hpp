#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// A wrapper that makes a blob self-describing: its kind, version, length and a checksum. Big
/// endian, the same in every version:
///
///   magic u32 | version u16 | total length u32 | body | CRC-32C of everything before it u32
namespace offload::protocol {

inline constexpr std::size_t kEnvelopeHeader = 4 + 2 + 4;
inline constexpr std::size_t kEnvelopeTrailer = 4;

/// The envelope of one kind of blob.
struct Envelope {
  const char* name;  ///< for error messages: "description of a memory region"
  std::uint32_t magic;
  std::uint16_t version;
  std::size_t most_bytes;  ///< including the envelope; a longer blob is refused unread

  /// `body` in its envelope.
  [[nodiscard]] std::vector<std::byte> wrap(std::span<const std::byte> body) const;

  /// The body, a view into `blob`. Throws Error: unsupported_version for a newer version,
  /// bad_message, with the reason, for a blob that is damaged or of another kind.
  [[nodiscard]] std::span<const std::byte> unwrap(std::span<const std::byte> blob) const;

  /// Throws Error (bad_message, "`name`: `why`") unless `condition` holds; for decoders of bodies.
  void require(bool condition, const char* why) const;
};

}  // namespace offload::protocol
