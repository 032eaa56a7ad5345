#include "comch/address.hpp"

#include <sys/un.h>

#include <charconv>
#include <string_view>

#include "core/error.hpp"

namespace offload::comch {

namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kTcp = "tcp:";

core::Error refusal(const std::string& text, const std::string& why) {
  return {core::ErrorCode::invalid_value,
          "'" + text + "' " + why + "; allowed: unix:PATH, tcp:HOST:PORT"};
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

Address parse_tcp(const std::string& text) {
  Address address;
  const std::size_t colon = text.rfind(':');
  if (colon < kTcp.size()) throw refusal(text, "has no port");
  address.host = text.substr(kTcp.size(), colon - kTcp.size());
  if (address.host.empty()) throw refusal(text, "has no host");
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (error != std::errc{} || stop != end) throw refusal(text, "has no port from 0 to 65535");
  return address;
}

}  // namespace

Address Address::parse(const std::string& text) {
  if (text.starts_with(kUnix)) return parse_unix(text);
  if (text.starts_with(kTcp)) return parse_tcp(text);
  throw refusal(text, "is not a comch address");
}

std::string Address::to_string() const {
  if (local()) return std::string(kUnix) + path;
  return std::string(kTcp) + host + ":" + std::to_string(port);
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
