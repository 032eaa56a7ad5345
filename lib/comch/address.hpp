#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comch/session/key.hpp"

namespace offload::comch {

/// Where server and worker meet: "unix:PATH" on one machine, "tcp:HOST:PORT" or "rdma:HOST:PORT" on
/// two; and the key that a worker over a network must have.
struct Address {
  std::string path{};  ///< empty for a network
  std::string host{};  ///< a name, an IPv4 or an IPv6 address
  std::uint16_t port = 0;
  Key key{};
  bool over_rdma = false;  ///< else a network is TCP

  [[nodiscard]] bool local() const noexcept { return host.empty(); }

  /// Throws Error (invalid_value) that says what is allowed.
  static Address parse(const std::string& text);
  [[nodiscard]] std::string to_string() const;
};

/// With the key of `key_file`, unless that is empty. Throws Error: what parse and load_key throw.
Address parse_with_key(const std::string& text, const std::string& key_file);

/// For command lines: the address that stands for a channel's name, nothing for an impossible one.
std::optional<std::string> address_of_name(const std::string& name);

/// For command lines: empty if Address::parse takes `text`, else what is wrong with it.
std::string check_address(const std::string& text);

}  // namespace offload::comch
