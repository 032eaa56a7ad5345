#pragma once

#include <openssl/evp.h>

#include <array>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/escape.hpp"

namespace offload::report {

inline std::string without_markup(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  for (const char each : text) {
    switch (each) {
      case '&': html += "&amp;"; break;
      case '<': html += "&lt;"; break;
      case '>': html += "&gt;"; break;
      case '"': html += "&quot;"; break;
      case '\'': html += "&#39;"; break;
      default: html += each;
    }
  }
  return html;
}

/// Returns an untrusted text as HTML, for an element or a quoted attribute: escaped as by
/// core::escaped() for a terminal, cut after 256 bytes, and without HTML's own characters.
inline std::string html_text(std::string_view text) {
  return without_markup(core::escaped(text));
}

/// `words` as a line of a shell, as HTML: those with special characters are quoted.
inline std::string html_command(std::string_view word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%";
  const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos;
  if (plain || word == "&") return html_text(word);  // merged results have it between commands
  std::string quoted = "'";
  for (const char each : core::escaped(word)) {
    if (each == '\'') quoted += "'\\'";
    quoted += each;
  }
  return without_markup(quoted + "'");
}

/// The source expression of Content-Security-Policy that allows exactly this style or script:
/// 'sha256-...'. Throws Error.
inline std::string policy_hash(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw core::Error(core::ErrorCode::unexpected, "cannot compute SHA-256");
  }
  std::array<unsigned char, 4 * ((EVP_MAX_MD_SIZE + 2) / 3) + 1> base64{};
  const int length = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(size));
  const auto* const begin = reinterpret_cast<const char*>(base64.data());
  return "'sha256-" + std::string(begin, static_cast<std::size_t>(length)) + "'";
}

}  // namespace offload::report
