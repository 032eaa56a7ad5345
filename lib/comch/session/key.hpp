#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

/// The secret that server and worker share where they meet over a network, and what is derived from
/// it. Any thread.
namespace offload::comch {

/// The fewest bytes of a key that is random, the fewest of one that is written as text (32 random
/// bytes in hexadecimal digits), and the most of either.
inline constexpr std::size_t kLeastKey = 32;
inline constexpr std::size_t kLeastTextKey = 64;
inline constexpr std::size_t kMostKey = 4096;

/// Secret bytes in pages of their own, which core dumps leave out (MADV_DONTDUMP, madvise(2)) and
/// which are wiped before they go back to the system. Move-only.
class Key {
 public:
  Key() noexcept = default;
  /// A copy, which the caller's bytes are not wiped for. Throws Error.
  explicit Key(std::span<const std::byte> bytes);
  Key(Key&& other) noexcept;
  Key& operator=(Key&& other) noexcept;
  ~Key();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {pages_, size_}; }

  /// Reads a key file that only its owner and root can read. Throws Error: not_permitted,
  /// invalid_value with the command that makes a good key, or the system's.
  static Key load(const std::string& path);

 private:
  std::byte* pages_ = nullptr;
  std::size_t mapped_ = 0;  ///< bytes, whole pages
  std::size_t size_ = 0;
};

/// Why `bytes` are too easy to guess for a key; empty if they are not. It finds what is too short,
/// text that is as short as a password, and what repeats or counts; it cannot tell 64 characters of
/// a known book from random ones.
std::string weakness(std::span<const std::byte> bytes);

/// What HMAC-SHA256 makes.
using Mac = std::array<std::byte, 32>;

/// HMAC-SHA256 with `key` over the parts one after the other: what is derived from a key.
Mac hmac(const Key& key, std::initializer_list<std::span<const std::byte>> parts);

/// 16 hexadecimal digits that tell keys apart, for logs and for a peer to say which key it has.
/// They tell nothing of a key that cannot be guessed.
std::string fingerprint(const Key& key);

/// Fills an array with random bytes: getrandom(2). Throws Error (operating_system).
void randomize(std::span<std::byte> bytes);

/// Compares in a time that does not depend on where they differ.
bool equal_in_secret(std::span<const std::byte> a, std::span<const std::byte> b) noexcept;

}  // namespace offload::comch
