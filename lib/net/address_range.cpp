#include "net/address_range.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "core/units.hpp"

namespace offload::net {

/// The prefix of an IPv4 address that is mapped into IPv6 (RFC 4291 2.5.5.2).
constexpr unsigned kMappedBits = 96;

std::optional<AddressRange> AddressRange::parse(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  AddressRange range;
  unsigned most = 8 * IpBytes{}.size();
  unsigned before = 0;
  sockaddr_storage storage{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    range.prefix_ = ip_bytes(storage);
    before = kMappedBits;
    most = 8 * sizeof v4.sin_addr;
  } else if (::inet_pton(AF_INET6, address.c_str(), range.prefix_.data()) != 1) {
    return std::nullopt;
  }
  range.bits_ = most;
  if (slash != std::string::npos) {
    const auto bits = core::parse_number<unsigned>(text.substr(slash + 1));
    if (!bits || *bits > most) return std::nullopt;
    range.bits_ = *bits;
  }
  range.bits_ += before;
  range.prefix_ = first_bits(range.prefix_, range.bits_);
  return range;
}

bool AddressRange::contains(const SocketAddress& address) const noexcept {
  const bool is_ip = address.family() == AF_INET || address.family() == AF_INET6;
  return is_ip && first_bits(ip_bytes(address.storage), bits_) == prefix_;
}

}  // namespace offload::net
