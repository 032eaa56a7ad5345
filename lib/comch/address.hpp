#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comch/keys/keyring.hpp"
#include "net/address_range.hpp"
#include "rdma/path/path_choice.hpp"

namespace offload::cli {
class CommandLine;
}

namespace offload::comch {

/// The address at which server and worker connect, "SCHEME:PATH" or "SCHEME:HOST:PORT" as the
/// transport of that scheme parses it (transport/transport.hpp), and the peers that are allowed
/// there.
struct Address {
  std::string scheme{};
  std::string path{};
  std::string host{};  ///< a name, an IPv4 or an IPv6 address
  std::uint16_t port = 0;

  /// The keys of which a peer over a network must have one. Copies of the address share them. Never
  /// null.
  std::shared_ptr<Keyring> keys = std::make_shared<Keyring>();
  /// Trusts every peer: uses no key and no encryption, and does not check the peer's user.
  bool insecure = false;
  /// The networks from which a server accepts peers; empty: all.
  std::vector<net::AddressRange> allowed{};
  /// The path of the queue pairs over RDMA.
  rdma::PathChoice path_choice{};

  /// Returns whether server and worker are on one machine and share the memory of the channels.
  /// Throws Error (invalid_value) for an unknown scheme.
  [[nodiscard]] bool local() const;
  /// Returns whether peers prove a key to each other: over a network, unless `insecure`.
  [[nodiscard]] bool takes_key() const { return !insecure && !local(); }
  /// Throws Error (not_permitted) if a key is required and there is none.
  void require_key() const;
  [[nodiscard]] bool allows(const net::SocketAddress& peer) const noexcept;

  /// Throws Error (invalid_value), whose text says what is allowed.
  static Address parse(const std::string& text);
  [[nodiscard]] std::string to_string() const;
};

// For Transport::parse. They return an error message, which is empty on success.

/// Accepts a path that fits in a sockaddr_un: unix(7).
std::string parse_path(std::string_view text, Address& address);
std::string parse_host_and_port(std::string_view text, Address& address);

/// The options of the command line that say which peers are allowed.
struct Security {
  std::vector<std::string> key_files{};
  bool insecure = false;
  std::vector<net::AddressRange> allowed{};
};

/// Returns an address with its keys, and logs what it does not protect. Throws Error: what
/// Address::parse, require_key and Keyring throw; invalid_value for path options without RDMA.
Address make_address(const std::string& text, const Security& security,
                     const rdma::PathChoice& path = {});

/// Returns the default of --comch: the address at which server and worker of one user connect.
std::string default_address();

/// Returns the address for a channel name of a command line, nothing for an invalid name.
std::optional<std::string> address_of_name(const std::string& name);

/// Returns an error message if Address::parse does not accept `text`, else an empty one.
std::string check_address(const std::string& text);

/// Adds --comch and its short form of the reference application, which set `address`, whose value
/// is the default; and --comch-key-file and --insecure. `description`: what the program does at the
/// address, without the form of an address.
void add_address_options(cli::CommandLine& line, std::string& address, Security& security,
                         const std::string& description);
/// Adds --rdma-device, --gid-index, --traffic-class, --service-level and --pkey.
void add_path_options(cli::CommandLine& line, rdma::PathChoice& path);
/// Adds --comch-allow, an option of servers.
void add_allow_option(cli::CommandLine& line, Security& security);

}  // namespace offload::comch
