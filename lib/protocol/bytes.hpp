#pragma once

#include <algorithm>
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

/// An unsigned integer's big-endian form, and back. The builtins, as compilers do not see one
/// instruction in a loop over bytes.
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

/// Big-endian integers in memory, at any alignment.
template <class Integer>
Integer load_big_endian(const std::byte* from) noexcept {
  Integer value;
  std::memcpy(&value, from, sizeof value);
  return big_endian(value);
}

template <class Integer>
void store_big_endian(std::byte* to, Integer value) noexcept {
  value = big_endian(value);
  std::memcpy(to, &value, sizeof value);
}

/// Reads fields off a message that a stranger sent. Reading past the end yields zeros and makes
/// ok() false for good, so that a decoder checks once, at its end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  template <class Integer>
  Integer integer() noexcept {
    const auto field = take(sizeof(Integer));
    return field.empty() ? Integer{0} : load_big_endian<Integer>(field.data());
  }

  /// A string with its length in the byte before it.
  std::string string() {
    const auto field = take(integer<std::uint8_t>());
    return {reinterpret_cast<const char*>(field.data()), field.size()};
  }

  /// Bytes with their length in the two before them.
  std::span<const std::byte> bytes() noexcept { return take(integer<std::uint16_t>()); }

  /// As many bytes as `to` has.
  void fixed(std::span<std::byte> to) noexcept {
    const auto field = take(to.size());
    std::copy(field.begin(), field.end(), to.begin());
  }

  /// All that is left.
  std::span<const std::byte> rest() noexcept { return take(rest_.size()); }

  /// No read went past the end, and nothing is left over.
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

/// Appends fields to a message. For control messages: it allocates.
class Writer {
 public:
  template <class Integer>
  Writer& integer(Integer value) {
    bytes_.resize(bytes_.size() + sizeof(Integer));
    store_big_endian(bytes_.data() + bytes_.size() - sizeof(Integer), value);
    return *this;
  }

  /// The counterpart of Reader::string; what is beyond 255 bytes is cut off.
  Writer& string(std::string_view text) {
    text = text.substr(0, std::numeric_limits<std::uint8_t>::max());
    return integer(static_cast<std::uint8_t>(text.size())).raw(text);
  }

  /// The counterpart of Reader::bytes; what is beyond 65,535 is cut off.
  Writer& bytes(std::span<const std::byte> bytes) {
    constexpr std::size_t kMost = std::numeric_limits<std::uint16_t>::max();
    bytes = bytes.first(std::min(bytes.size(), kMost));
    return integer(static_cast<std::uint16_t>(bytes.size())).append(bytes);
  }

  /// The counterpart of Reader::fixed.
  Writer& fixed(std::span<const std::byte> bytes) { return append(bytes); }

  /// Without its length.
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
