#include "comch/address.hpp"

#include <sys/un.h>

#include <algorithm>

#include "cli/options.hpp"
#include "comch/transport/local/runtime_folder.hpp"
#include "comch/transport/transport.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/units.hpp"

namespace offload::comch {
namespace {

/// Returns "; did you mean ...?" for an address that lacks its scheme; else nothing.
std::string without_scheme(const std::string& text) {
  if (find_transport(std::string_view(text).substr(0, text.find(':'))) != nullptr) return {};
  Address ignored;
  std::string meant;
  const std::size_t url = text.find("://");
  std::string bare = url == std::string::npos ? text : text.substr(url + 3);
  if (url != std::string::npos && bare.ends_with('/')) bare.pop_back();
  if (text.starts_with('/')) meant = "unix:" + text;
  if (!text.starts_with('/') && parse_host_and_port(bare, ignored).empty()) meant = "tcp:" + bare;
  return meant.empty() ? "" : "; did you mean " + meant + "?";
}

core::Error refusal(const std::string& text, const std::string& why) {
  std::string allowed;
  for (const Transport& transport : transports()) {
    allowed += (allowed.empty() ? "" : ", ") + transport.example();
  }
  return {core::ErrorCode::invalid_value,
          "'" + text + "' " + why + "; allowed: " + allowed + without_scheme(text)};
}

/// "tcp:HOST:PORT or rdma:HOST:PORT"
std::string examples(bool shares_memory) {
  std::string examples;
  for (const Transport& transport : transports()) {
    if (transport.shares_memory != shares_memory) continue;
    examples += (examples.empty() ? "" : " or ") + transport.example();
  }
  return examples;
}

}  // namespace

std::string parse_path(std::string_view text, Address& address) {
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (text.empty()) return "has no path";
  if (text.size() > kLongest) return fmt::format("has a path longer than {} bytes", kLongest);
  address.path = text;
  return {};
}

std::string parse_host_and_port(std::string_view text, Address& address) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return "has no port";
  address.host = text.substr(0, colon);
  if (address.host.empty()) return "has no host";
  const auto port = core::parse_number<std::uint16_t>(text.substr(colon + 1));
  address.port = port.value_or(0);
  return port ? "" : "has no port from 0 to 65535";
}

bool Address::local() const {
  return transport_of(scheme).shares_memory;
}

Address Address::parse(const std::string& text) {
  const std::size_t colon = text.find(':');
  const Transport* const transport = colon != std::string::npos
                                         ? find_transport(std::string_view(text).substr(0, colon))
                                         : nullptr;
  if (transport == nullptr) throw refusal(text, "is not a comch address");
  Address address;
  address.scheme = transport->scheme;
  const std::string why = transport->parse(std::string_view(text).substr(colon + 1), address);
  if (!why.empty()) throw refusal(text, why);
  return address;
}

std::string Address::to_string() const {
  return scheme + ":" + (path.empty() ? host + ":" + std::to_string(port) : path);
}

void Address::require_key() const {
  if (!takes_key() || !keys->empty()) return;
  throw core::Error(
      core::ErrorCode::not_permitted,
      to_string() +
          " requires a key (--comch-key-file), on loopback too; --insecure disables this");
}

bool Address::allows(const net::SocketAddress& peer) const noexcept {
  return allowed.empty() || std::ranges::any_of(allowed, [&](const net::AddressRange& range) {
           return range.contains(peer);
         });
}

Address make_address(const std::string& text, const Security& security,
                     const rdma::PathChoice& path) {
  Address address = Address::parse(text);
  if (address.scheme != "rdma" && path != rdma::PathChoice{}) {
    throw core::Error(core::ErrorCode::invalid_value,
                      "--rdma-device, --gid-index, --traffic-class, --service-level and --pkey are "
                      "for --comch rdma:HOST:PORT, not " +
                          address.to_string());
  }
  address.path_choice = path;
  address.insecure = security.insecure;
  address.allowed = security.allowed;
  address.keys = std::make_shared<Keyring>(security.key_files);
  address.require_key();
  if (security.insecure) {
    core::log_warning("--insecure: every peer that reaches {} is trusted with all data",
                      address.to_string());
  } else if (address.scheme == "rdma") {
    core::log_warning(
        "{}: peers prove their key, and control messages are encrypted, but requests and responses "
        "are neither encrypted nor authenticated: the network must be trusted",
        address.to_string());
  }
  return address;
}

std::string default_address() {
  return "unix:" + runtime_folder() + "/dpu-gpu-offload.sock";
}

std::optional<std::string> address_of_name(const std::string& name) {
  const std::string address = "unix:" + runtime_folder() + "/" + name + ".sock";
  if (name.empty() || name.find('/') != std::string::npos || !check_address(address).empty()) {
    return std::nullopt;
  }
  return address;
}

std::string check_address(const std::string& text) {
  try {
    Address::parse(text);
    return {};
  } catch (const core::Error& error) {
    return error.what();
  }
}

void add_address_options(cli::CommandLine& line, std::string& address, Security& security,
                         const std::string& description) {
  const auto comch = cli::add_text(line, "--comch ADDRESS", address,
                                   description + ": " + examples(true) + " on one machine, " +
                                       examples(false) + " on two")
                         .check(check_address);
  cli::add(line, "-c,--comch-channel-name NAME", address, address_of_name, "a name without '/'",
           "Short for --comch unix:FOLDER/NAME.sock, with the folder of the default")
      .default_str("")  // the variable holds the default of --comch
      .excludes(comch);
  const auto take_key_file = [&security](const std::string& file) {
    security.key_files.push_back(file);
    return security.key_files.size() <= Keyring::kMost;
  };
  const auto key_file = cli::add_values(
      line, "--comch-key-file FILE", take_key_file, "one of two: the new key and the old one",
      fmt::format("Authenticate peers over a network with this key, {} to {} "
                  "bytes; make one with: openssl rand -out FILE {}. If given "
                  "twice, the first is proven and both are accepted",
                  kLeastKey, kMostKey, kLeastKey));
  cli::add_flag(line, "--insecure", security.insecure,
                "Use no key and no encryption, and do not check the peer's user: every peer that "
                "reaches the address is trusted")
      .excludes(key_file);
}

void add_path_options(cli::CommandLine& line, rdma::PathChoice& path) {
  cli::add_text(line, "--rdma-device DEVICE", path.device,
                "The RDMA device: a name, rdma:INDEX or a PCI address. Default: the device with "
                "the local address of the connection to the peer");
  rdma::add_path_options(line, path);
}

void add_allow_option(cli::CommandLine& line, Security& security) {
  cli::add_each(line, "--comch-allow CIDR", security.allowed, &net::AddressRange::parse,
                "a network, such as 10.0.0.0/8 or fd00::/8",
                "Accept peers only from this network. May be repeated. Default: from all");
}

}  // namespace offload::comch
