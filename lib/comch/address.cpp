#include "comch/address.hpp"

#include <sys/un.h>

#include <charconv>
#include <string_view>

#include "core/error.hpp"

namespace offload::comch {

namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kTcp = "tcp:";
constexpr std::string_view kRdma = "rdma:";

core::Error refusal(const std::string& text, const std::string& why) {
  return {core::ErrorCode::invalid_value,
          "'" + text + "' " + why + "; allowed: unix:PATH, tcp:HOST:PORT, rdma:HOST:PORT"};
}

Address parse_unix(const std::string& text) {
  Address address;
  address.path = text.substr(kUnix.size());
  if (address.path.empty()) throw refusal(text, "has no path");
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (address.path.size() > kLongest) {
    throw refusal(text, "has a path longer than " + std::to_string(kLongest) + " bytes");
  }
  return address;
}

/// `scheme`: that `text` begins with.
Address parse_network(const std::string& text, std::string_view scheme) {
  Address address;
  address.over_rdma = scheme == kRdma;
  const std::size_t colon = text.rfind(':');
  if (colon < scheme.size()) throw refusal(text, "has no port");
  address.host = text.substr(scheme.size(), colon - scheme.size());
  if (address.host.empty()) throw refusal(text, "has no host");
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (error != std::errc{} || stop != end) throw refusal(text, "has no port from 0 to 65535");
  return address;
}

}  // namespace

Address Address::parse(const std::string& text) {
  if (text.starts_with(kUnix)) return parse_unix(text);
  for (const std::string_view scheme : {kTcp, kRdma}) {
    if (text.starts_with(scheme)) return parse_network(text, scheme);
  }
  throw refusal(text, "is not a comch address");
}

std::string Address::to_string() const {
  if (local()) return std::string(kUnix) + path;
  return std::string(over_rdma ? kRdma : kTcp) + host + ":" + std::to_string(port);
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

}  // namespace offload::comch
