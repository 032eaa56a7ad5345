#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comch/session/keyring.hpp"
#include "net/address_range.hpp"
#include "rdma/connection/path_choice.hpp"

namespace offload::cli {
class CommandLine;
}

namespace offload::comch {

/// Where server and worker meet: "SCHEME:PATH" or "SCHEME:HOST:PORT" as the transport of that
/// scheme takes it (transport/transport.hpp), and who may be met there.
struct Address {
  std::string scheme{};
  std::string path{};
  std::string host{};  ///< a name, an IPv4 or an IPv6 address
  std::uint16_t port = 0;

  /// What a peer over a network must have; copies of the address share it. Never null.
  std::shared_ptr<Keyring> keys = std::make_shared<Keyring>();
  /// Anybody who reaches the other end is trusted: no key, no encryption, no look at the peer's
  /// user.
  bool insecure = false;
  /// The networks that a server's peers have to be of; none: any.
  std::vector<net::AddressRange> allowed{};
  /// Over RDMA, of its queue pairs.
  rdma::PathChoice path_choice{};

  /// Whether server and worker are on one machine and share the channels' memory. Throws Error
  /// (invalid_value) for an unknown scheme.
  [[nodiscard]] bool local() const;
  /// Whether peers prove a key to each other: over a network, unless it is insecure.
  [[nodiscard]] bool takes_key() const { return !insecure && !local(); }
  /// Throws Error (not_permitted) where a key is taken and there is none.
  void require_key() const;
  [[nodiscard]] bool allows(const net::SocketAddress& peer) const noexcept;

  /// Throws Error (invalid_value) that says what is allowed.
  static Address parse(const std::string& text);
  [[nodiscard]] std::string to_string() const;
};

// For Transport::parse. They return what is wrong with `text`, nothing if it was taken.

/// As long as sockaddr_un takes it: unix(7).
std::string parse_path(std::string_view text, Address& address);
std::string parse_host_and_port(std::string_view text, Address& address);

/// What the command line says of who may be met.
struct Security {
  std::vector<std::string> key_files{};
  bool insecure = false;
  std::vector<net::AddressRange> allowed{};
};

/// An address with its keys; what it does not protect is logged. Throws Error: what Address::parse,
/// require_key and Keyring throw; invalid_value for a path that is chosen where there is no RDMA.
Address make_address(const std::string& text, const Security& security,
                     const rdma::PathChoice& path = {});

/// Where server and worker of one user meet unless they are told otherwise.
std::string default_address();

/// For command lines: the address that stands for a channel's name, nothing for an impossible one.
std::optional<std::string> address_of_name(const std::string& name);

/// For command lines: empty if Address::parse takes `text`, else what is wrong with it.
std::string check_address(const std::string& text);

/// --comch, and the reference's short form of it, into `address`, whose value is the default;
/// --comch-key-file and --insecure. `description`: what the program does there, without the form of
/// an address.
void add_address_options(cli::CommandLine& line, std::string& address, Security& security,
                         const std::string& description);
/// --rdma-device, --gid-index, --traffic-class, --service-level and --pkey.
void add_path_options(cli::CommandLine& line, rdma::PathChoice& path);
/// --comch-allow, a server's.
void add_allow_option(cli::CommandLine& line, Security& security);

}  // namespace offload::comch
