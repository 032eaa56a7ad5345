#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace offload::client {

/// The bytes of requests.
struct Payload {
  enum class Kind : std::uint8_t { random, constant, file };
  Kind kind = Kind::random;
  std::byte value{};               ///< constant: each byte
  std::string path;                ///< file: whose bytes are repeated as often as a request needs
  std::vector<std::byte> content;  ///< file: its bytes, after load()

  /// Parses "random", "constant:BYTE" (0 to 255) or "file:PATH"; nothing for any other text.
  static std::optional<Payload> parse(const std::string& text);
  /// Reads the file, if there is one: 1 byte to 16 MiB. Throws Error.
  void load();
};

}  // namespace offload::client
