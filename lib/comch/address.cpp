#include "comch/address.hpp"

#include <sys/un.h>

#include "core/error.hpp"

namespace offload::comch {

Address Address::parse(const std::string& text) {
  constexpr std::string_view kUnix = "unix:";
  const auto refuse = [&](const std::string& why) -> core::Error {
    return {core::ErrorCode::invalid_value, "'" + text + "' " + why + "; allowed: unix:PATH"};
  };
  if (!text.starts_with(kUnix)) throw refuse("is not a comch address");
  std::string path = text.substr(kUnix.size());
  if (path.empty()) throw refuse("has no path");
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kLongest) {
    throw refuse("has a path longer than " + std::to_string(kLongest) + " bytes");
  }
  return {std::move(path)};
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
