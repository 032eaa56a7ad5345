#include "core/escape.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace offload::core {
namespace {

struct Character {
  char32_t code;
  std::size_t bytes;  ///< that it takes; 0: what is there is no UTF-8
};

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

/// The character at the front of `text`, which is not empty (RFC 3629, section 3).
Character first_of(std::string_view text) {
  const std::uint8_t lead = byte_at(text, 0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {0, 0};
  char32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte_at(text, i) & 0xc0U) != 0x80) return {0, 0};
    code = (code << 6) | (byte_at(text, i) & 0x3fU);
  }
  constexpr char32_t kFirst[] = {0, 0, 0x80, 0x800, 0x10000};  // by its bytes: no longer form
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kFirst[bytes] || code > 0x10ffff || surrogate) return {0, 0};
  return {code, bytes};
}

bool is_shown(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) {
    return code >= first && code <= last;
  };
  return !within(0, 0x1f) && code != '\\' && !within(0x7f, 0x9f) && code != 0x61c &&
         !within(0x200e, 0x200f) && !within(0x2028, 0x202e) && !within(0x2066, 0x2069);
}

std::string hexadecimal(char32_t code) {
  std::array<char, 8> digits{};
  const auto end =
      std::to_chars(digits.begin(), digits.end(), static_cast<std::uint32_t>(code), 16);
  return {digits.begin(), end.ptr};
}

}  // namespace

// Uses only the standard library, because the library for clients must not need another one.
std::string escaped(std::string_view text) {
  std::string shown;
  std::size_t at = 0;
  while (at != text.size()) {
    const Character next = first_of(text.substr(at));
    const std::size_t bytes = std::max<std::size_t>(next.bytes, 1);
    if (at + bytes > kLongestShown) return shown + "...";
    if (next.bytes != 0 && is_shown(next.code)) {
      shown += text.substr(at, bytes);
    } else if (next.code == '\\') {
      shown += "\\\\";
    } else if (bytes == 1) {
      const std::uint8_t byte = byte_at(text, at);
      shown += (byte < 0x10 ? "\\x0" : "\\x") + hexadecimal(byte);
    } else {
      shown += "\\u{" + hexadecimal(next.code) + "}";
    }
    at += bytes;
  }
  return shown;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at != text.size();) {
    const Character next = first_of(text.substr(at));
    const std::size_t bytes = std::max<std::size_t>(next.bytes, 1);
    const bool as_it_is =
        is_shown(next.code) || next.code == '\n' || next.code == '\t' || next.code == '\\';
    if (next.bytes == 0) {
      shown += "\\ufffd";
    } else if (as_it_is) {
      shown += text.substr(at, bytes);
    } else {
      const std::string digits = hexadecimal(next.code);  // of the basic plane: four at most
      shown += "\\u" + std::string(4 - digits.size(), '0') + digits;
    }
    at += bytes;
  }
  return shown;
}

}  // namespace offload::core
