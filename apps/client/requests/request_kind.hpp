#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/client/requests/service.hpp"
#include "apps/client/requests/size_mix.hpp"
#include "apps/client/requests/verification.hpp"

namespace offload::client {

/// A kind of requests in a load of several: --kind. The other options say what it leaves out.
struct RequestKind {
  std::string name;
  double weight = 1;                  ///< its share of the rate and of the connections
  std::optional<std::uint16_t> port;  ///< of the server
  std::optional<SizeMix> sizes;
  std::string requests_file;  ///< empty: none
  std::optional<Service> service;
  std::optional<Verification> verification;
  std::string text;  ///< as said

  /// Parses "NAME:KEY=VALUE,..." with the keys port, weight, size, requests, service and verify,
  /// whose value may have commas: it goes on until the end. Nothing for any other text.
  static std::optional<RequestKind> parse(const std::string& text);
};

}  // namespace offload::client
