#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// What is around a blob that travels any way there is and has to tell by itself whether it is
/// whole and for this version. Big endian, in every version:
///
///   magic u32 | version u16 | length of the whole u32 | body | CRC-32C of all before it u32
namespace offload::protocol {

inline constexpr std::size_t kEnvelopeHeader = 4 + 2 + 4;
inline constexpr std::size_t kEnvelopeTrailer = 4;

/// One kind of blob.
struct Envelope {
  const char* name;  ///< for errors: "description of a memory region"
  std::uint32_t magic;
  std::uint16_t version;
  std::size_t most_bytes;  ///< with the envelope: a longer one is refused unread

  [[nodiscard]] std::vector<std::byte> wrap(std::span<const std::byte> body) const;

  /// The body, in `blob`. Throws Error: unsupported_version for a version to come, bad_message,
  /// with the reason, for what is not whole or not of this kind.
  [[nodiscard]] std::span<const std::byte> unwrap(std::span<const std::byte> blob) const;

  /// Throws the Error (bad_message) for a body that is wrong, unless `condition` holds.
  void require(bool condition, const char* why) const;
};

}  // namespace offload::protocol
