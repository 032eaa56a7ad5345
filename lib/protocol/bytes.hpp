#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace offload::protocol {

/// Converts an unsigned integer to big endian, or back. It uses builtins, as compilers do not
/// reduce a loop over bytes to one instruction.
template <class Integer>
constexpr Integer big_endian(Integer value) noexcept {
  static_assert(std::is_unsigned_v<Integer>);
  if constexpr (std::endian::native == std::endian::big || sizeof(Integer) == 1) {
    return value;
  } else if constexpr (sizeof(Integer) == 2) {
    return __builtin_bswap16(value);
  } else if constexpr (sizeof(Integer) == 4) {
    return __builtin_bswap32(value);
  } else {
    static_assert(sizeof(Integer) == 8);
    return __builtin_bswap64(value);
  }
}

/// Loads a big-endian integer from memory, at any alignment.
template <class Integer>
Integer load_big_endian(const std::byte* from) noexcept {
  Integer value;
  std::memcpy(&value, from, sizeof value);
  return big_endian(value);
}

/// Stores one.
template <class Integer>
void store_big_endian(std::byte* to, Integer value) noexcept {
  value = big_endian(value);
  std::memcpy(to, &value, sizeof value);
}

/// A reader of the fields of an untrusted message. A read past the end yields zeros and makes ok()
/// false for good, so that a decoder needs only one check, at its end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  template <class Integer>
  Integer integer() noexcept {
    const auto field = take(sizeof(Integer));
    return field.empty() ? Integer{0} : load_big_endian<Integer>(field.data());
  }

  /// A string preceded by its length in one byte.
  std::string string() {
    const auto field = take(integer<std::uint8_t>());
    return {reinterpret_cast<const char*>(field.data()), field.size()};
  }

  /// Bytes preceded by their length in two bytes.
  std::span<const std::byte> bytes() noexcept { return take(integer<std::uint16_t>()); }

  /// Reads to.size() bytes into `to`.
  void fixed(std::span<std::byte> to) noexcept {
    const auto field = take(to.size());
    std::copy(field.begin(), field.end(), to.begin());
  }

  /// All remaining bytes.
  std::span<const std::byte> rest() noexcept { return take(rest_.size()); }

  /// Returns whether no read went past the end and no bytes remain.
  [[nodiscard]] bool finished() const noexcept { return ok_ && rest_.empty(); }
  [[nodiscard]] bool ok() const noexcept { return ok_; }

 private:
  std::span<const std::byte> take(std::size_t count) noexcept {
    if (count > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const auto field = rest_.first(count);
    rest_ = rest_.subspan(count);
    return field;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

/// A writer of the fields of a message. It allocates, so it is for control messages only.
class Writer {
 public:
  template <class Integer>
  Writer& integer(Integer value) {
    std::array<std::byte, sizeof(Integer)> field;
    store_big_endian(field.data(), value);
    return append(field);
  }

  /// The counterpart of Reader::string; cuts the text off after 255 bytes.
  Writer& string(std::string_view text) {
    text = text.substr(0, std::numeric_limits<std::uint8_t>::max());
    return integer(static_cast<std::uint8_t>(text.size())).raw(text);
  }

  /// The counterpart of Reader::bytes; cuts them off after 65,535.
  Writer& bytes(std::span<const std::byte> bytes) {
    constexpr std::size_t kMost = std::numeric_limits<std::uint16_t>::max();
    bytes = bytes.first(std::min(bytes.size(), kMost));
    return integer(static_cast<std::uint16_t>(bytes.size())).append(bytes);
  }

  /// The counterpart of Reader::fixed.
  Writer& fixed(std::span<const std::byte> bytes) { return append(bytes); }

  /// Text without a length.
  Writer& raw(std::string_view text) { return append(std::as_bytes(std::span(text))); }

  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  Writer& append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace offload::protocol
