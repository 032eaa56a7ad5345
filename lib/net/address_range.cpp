#include "net/address_range.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

namespace offload::net {
namespace {

constexpr std::array<std::byte, 12> kMapped{
    {{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, std::byte{0xff}, std::byte{0xff}}};
constexpr unsigned kMappedBits = 8 * kMapped.size();
constexpr unsigned kSubscriberBits = 64;

IpBytes mapped(const in_addr& v4) noexcept {
  IpBytes bytes{};
  std::ranges::copy(kMapped, bytes.begin());
  std::memcpy(bytes.data() + kMapped.size(), &v4, sizeof v4);
  return bytes;
}

IpBytes first_bits(const IpBytes& of, unsigned count) noexcept {
  IpBytes bytes{};
  for (unsigned i = 0; i < bytes.size() && 8 * i < count; ++i) {
    const unsigned left = std::min(count - 8 * i, 8U);
    bytes[i] = of[i] & static_cast<std::byte>(0xff00U >> left);
  }
  return bytes;
}

}  // namespace

IpBytes ip_bytes(const SocketAddress& address) noexcept {
  IpBytes bytes{};
  if (address.family() == AF_INET) {
    return mapped(reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr);
  }
  if (address.family() == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr;
    std::memcpy(bytes.data(), &v6, bytes.size());
  }
  return bytes;
}

IpBytes subscriber_of(const SocketAddress& address) noexcept {
  const IpBytes bytes = ip_bytes(address);
  const bool v4 = std::ranges::equal(kMapped, std::span(bytes).first<kMapped.size()>());
  return v4 ? bytes : first_bits(bytes, kSubscriberBits);
}

std::optional<AddressRange> AddressRange::parse(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  AddressRange range;
  unsigned most = 8 * IpBytes{}.size();
  unsigned before = 0;
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    range.prefix_ = mapped(v4);
    before = kMappedBits;
    most = 8 * sizeof v4;
  } else if (::inet_pton(AF_INET6, address.c_str(), range.prefix_.data()) != 1) {
    return std::nullopt;
  }
  range.bits_ = most;
  if (slash != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + slash + 1, end, range.bits_);
    if (error != std::errc{} || rest != end || range.bits_ > most) return std::nullopt;
  }
  range.bits_ += before;
  range.prefix_ = first_bits(range.prefix_, range.bits_);
  return range;
}

bool AddressRange::contains(const SocketAddress& address) const noexcept {
  const bool is_ip = address.family() == AF_INET || address.family() == AF_INET6;
  return is_ip && first_bits(ip_bytes(address), bits_) == prefix_;
}

}  // namespace offload::net
