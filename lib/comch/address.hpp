#pragma once

#include <optional>
#include <string>

namespace offload::comch {

/// Where server and worker meet: "unix:PATH".
struct Address {
  std::string path;

  /// Throws Error (invalid_value) that says what is allowed.
  static Address parse(const std::string& text);
  [[nodiscard]] std::string to_string() const { return "unix:" + path; }
};

/// For command lines: the address that stands for a channel's name, nothing for an impossible one.
std::optional<std::string> address_of_name(const std::string& name);

/// For command lines: empty if Address::parse takes `text`, else what is wrong with it.
std::string check_address(const std::string& text);

}  // namespace offload::comch
