#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <optional>
#include <string>

#include "core/units.hpp"
#include "net/socket.hpp"
#include "net/source/source.hpp"

namespace offload::net {

/// A range of IP addresses in the notation of RFC 4632 and RFC 4291: "10.0.0.0/8", "fd00::/8", or
/// one address.
class AddressRange {
 public:
  /// Nothing for any other text; bits behind the prefix do not count.
  static std::optional<AddressRange> parse(const std::string& text) {
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

  [[nodiscard]] bool contains(const SocketAddress& address) const noexcept {
    const bool is_ip = address.family() == AF_INET || address.family() == AF_INET6;
    return is_ip && first_bits(ip_bytes(address.storage), bits_) == prefix_;
  }

 private:
  /// The prefix of an IPv4 address that is mapped into IPv6 (RFC 4291 2.5.5.2).
  static constexpr unsigned kMappedBits = 96;

  IpBytes prefix_{};
  unsigned bits_ = 0;  ///< of prefix_
};

}  // namespace offload::net
