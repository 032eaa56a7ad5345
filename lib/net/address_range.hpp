#pragma once

#include <optional>
#include <string>

#include "net/socket.hpp"
#include "net/source/source.hpp"

namespace offload::net {

/// A range of IP addresses in the notation of RFC 4632 and RFC 4291: "10.0.0.0/8", "fd00::/8", or
/// one address.
class AddressRange {
 public:
  /// Nothing for any other text; bits behind the prefix do not count.
  static std::optional<AddressRange> parse(const std::string& text);

  [[nodiscard]] bool contains(const SocketAddress& address) const noexcept;

 private:
  IpBytes prefix_{};
  unsigned bits_ = 0;  ///< of prefix_
};

}  // namespace offload::net
