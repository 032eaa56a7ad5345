#include "net/source/source.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace offload::net {

constexpr std::array<std::byte, 12> kMapped{
    {{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, std::byte{0xff}, std::byte{0xff}}};
constexpr unsigned kSiteBits = 64;

IpBytes ip_bytes(const sockaddr_storage& address) noexcept {
  IpBytes bytes{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    std::ranges::copy(kMapped, bytes.begin());
    std::memcpy(bytes.data() + kMapped.size(), &v4, sizeof v4);
  } else if (address.ss_family == AF_INET6) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr,
                bytes.size());
  }
  return bytes;
}

bool is_v4(const IpBytes& address) noexcept {
  return std::ranges::equal(kMapped, std::span(address).first<kMapped.size()>());
}

IpBytes first_bits(const IpBytes& address, unsigned count) noexcept {
  IpBytes bytes{};
  for (unsigned i = 0; i < bytes.size() && 8 * i < count; ++i) {
    const unsigned left = std::min(count - 8 * i, 8U);
    bytes[i] = address[i] & static_cast<std::byte>(0xff00U >> left);
  }
  return bytes;
}

Source source_of(const IpBytes& address) noexcept {
  return is_v4(address) ? address : first_bits(address, kSiteBits);
}

}  // namespace offload::net
