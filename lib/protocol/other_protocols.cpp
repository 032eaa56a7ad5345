#include "protocol/other_protocols.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace offload::protocol {
namespace {

/// The first four bytes of the methods of RFC 9110, of PATCH, of HTTP/2, and of a response.
constexpr std::array<std::string_view, 11> kHttp{"GET ", "HEAD", "POST", "PUT ", "DELE", "CONN",
                                                 "OPTI", "TRAC", "PATC", "PRI ", "HTTP"};

}  // namespace

OtherProtocol recognise(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t kEnough = 4;
  if (bytes.size() < kEnough) return OtherProtocol::none;
  // A record of a handshake or an alert, and a version 3.x (RFC 8446, 5.1).
  const bool is_record = bytes[0] == std::byte{22} || bytes[0] == std::byte{21};
  if (is_record && bytes[1] == std::byte{3}) return OtherProtocol::tls;
  const bool is_http = std::ranges::any_of(kHttp, [&](std::string_view begin) {
    return std::memcmp(bytes.data(), begin.data(), kEnough) == 0;
  });
  return is_http ? OtherProtocol::http : OtherProtocol::none;
}

}  // namespace offload::protocol
