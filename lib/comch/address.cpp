#include "comch/address.hpp"

#include <sys/un.h>

#include <charconv>

#include "cli/options.hpp"
#include "comch/transport/transport.hpp"
#include "core/error.hpp"

namespace offload::comch {
namespace {

core::Error refusal(const std::string& text, const std::string& why) {
  std::string allowed;
  for (const Transport& transport : transports()) {
    allowed += (allowed.empty() ? "" : ", ") + transport.example();
  }
  return {core::ErrorCode::invalid_value, "'" + text + "' " + why + "; allowed: " + allowed};
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
  if (text.size() > kLongest) {
    return "has a path longer than " + std::to_string(kLongest) + " bytes";
  }
  address.path = text;
  return {};
}

std::string parse_host_and_port(std::string_view text, Address& address) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return "has no port";
  address.host = text.substr(0, colon);
  if (address.host.empty()) return "has no host";
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, address.port);
  return error == std::errc{} && stop == end ? "" : "has no port from 0 to 65535";
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

Address parse_with_key(const std::string& text, const std::string& key_file) {
  Address address = Address::parse(text);
  if (!key_file.empty()) address.key = load_key(key_file);
  return address;
}

std::optional<std::string> address_of_name(const std::string& name) {
  const std::string address = "unix:/tmp/" + name + ".sock";
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

void add_address_options(cli::CommandLine& line, std::string& address, std::string& key_file,
                         const std::string& description) {
  const auto comch = cli::add_text(line, "--comch", address,
                                   description + ": " + examples(true) + " on one machine, " +
                                       examples(false) + " on two")
                         .type_name("ADDRESS")
                         .default_str(address)
                         .check(check_address);
  cli::add(line, "-c,--comch-channel-name", address, address_of_name, "a name without '/'",
           "Short for --comch unix:/tmp/NAME.sock")
      .type_name("NAME")
      .excludes(comch);
  cli::add_text(line, "--comch-key-file", key_file,
                "The key for two machines, 16 to 4096 bytes that server and worker share. Without "
                "it they meet on loopback alone")
      .type_name("FILE");
}

}  // namespace offload::comch
