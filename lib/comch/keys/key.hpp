#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

/// The secret that server and worker share over a network, and values derived from it. Any thread.
namespace offload::comch {

/// The minimum length of a random key, the minimum length of a key that is text (32 random bytes in
/// hexadecimal digits), and the maximum length of both, in bytes.
inline constexpr std::size_t kLeastKey = 32;
inline constexpr std::size_t kLeastTextKey = 64;
inline constexpr std::size_t kMostKey = 4096;

/// Secret bytes in separate pages, which core dumps omit (MADV_DONTDUMP, madvise(2)) and which are
/// wiped before they are returned to the system. Move-only.
class Key {
 public:
  Key() noexcept = default;
  /// Copies `bytes`; the caller's bytes are not wiped. Throws Error.
  explicit Key(std::span<const std::byte> bytes);
  Key(Key&& other) noexcept;
  Key& operator=(Key&& other) noexcept;
  ~Key();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {pages_, size_}; }

  /// Reads a key file that only its owner and root can read. Throws Error: not_permitted,
  /// invalid_value with a command that makes a good key, or an error of the system.
  static Key load(const std::string& path);

 private:
  std::byte* pages_ = nullptr;
  std::size_t mapped_ = 0;  ///< bytes, whole pages
  std::size_t size_ = 0;
};

/// Returns why `bytes` are too easy to guess for a key; empty if they are not. It finds keys that
/// are too short, text as short as a password, and bytes that repeat or count; it cannot tell 64
/// characters of a known book from random ones.
std::string weakness(std::span<const std::byte> bytes);

/// The result of HMAC-SHA256.
using Mac = std::array<std::byte, 32>;

/// Derives a value from a key: HMAC-SHA256 with `key` over the concatenation of the parts.
Mac hmac(const Key& key, std::initializer_list<std::span<const std::byte>> parts);

/// Returns 16 hexadecimal digits that identify a key, for logs and for a peer to say which key it
/// has. They reveal nothing about a key that cannot be guessed.
std::string fingerprint(const Key& key);

/// Fills an array with random bytes: getrandom(2). Throws Error (operating_system).
void randomize(std::span<std::byte> bytes);

/// Compares `a` and `b` in a time that does not depend on the position of a difference.
bool equal_in_secret(std::span<const std::byte> a, std::span<const std::byte> b) noexcept;

}  // namespace offload::comch
