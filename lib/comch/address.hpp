#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comch/session/key.hpp"

namespace offload::cli {
class CommandLine;
}

namespace offload::comch {

/// Where server and worker meet: "SCHEME:PATH" or "SCHEME:HOST:PORT" as the transport of that
/// scheme takes it (transport/transport.hpp), and the key that a worker over a network must have.
struct Address {
  std::string scheme{};
  std::string path{};
  std::string host{};  ///< a name, an IPv4 or an IPv6 address
  std::uint16_t port = 0;
  Key key{};

  /// Whether server and worker are on one machine and share the channels' memory. Throws Error
  /// (invalid_value) for an unknown scheme.
  [[nodiscard]] bool local() const;

  /// Throws Error (invalid_value) that says what is allowed.
  static Address parse(const std::string& text);
  [[nodiscard]] std::string to_string() const;
};

// For Transport::parse. They return what is wrong with `text`, nothing if it was taken.

/// As long as sockaddr_un takes it: unix(7).
std::string parse_path(std::string_view text, Address& address);
std::string parse_host_and_port(std::string_view text, Address& address);

/// With the key of `key_file`, unless that is empty. Throws Error: what parse and load_key throw.
Address parse_with_key(const std::string& text, const std::string& key_file);

/// For command lines: the address that stands for a channel's name, nothing for an impossible one.
std::optional<std::string> address_of_name(const std::string& name);

/// For command lines: empty if Address::parse takes `text`, else what is wrong with it.
std::string check_address(const std::string& text);

/// --comch, and the reference's short form of it, into `address`, whose value is the default, and
/// --comch-key-file. `description`: what the program does there, without the form of an address.
void add_address_options(cli::CommandLine& line, std::string& address, std::string& key_file,
                         const std::string& description);

}  // namespace offload::comch
