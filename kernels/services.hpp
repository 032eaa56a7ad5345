#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "kernels/services/crc32c.hpp"
#include "kernels/services/echo.hpp"
#include "kernels/services/reverse.hpp"

/// The services, which process a worker's messages. Each is one file in services/, a function
/// object with
///   kName                      its name on the command line (--service)
///   response_length(length)    bytes it answers to a request of `length`, at most the longer of
///                              `length` and 48
///   operator()(group, request, response)
///                              called by every lane of the group; it calls response.fill once
/// and its type in the list below.
namespace offload::kernels {

using Services = std::tuple<Reverse, Echo, Crc32c>;

/// Calls `action` with the service called `name`; returns false if there is none.
template <class Action>
bool with_service(std::string_view name, Action action) {
  return std::apply(
      [&](auto... service) {
        return ((name == service.kName ? (action(service), true) : false) || ...);
      },
      Services{});
}

/// Returns the bytes with which a service answers a request of `length`.
using ResponseLength = std::uint32_t (*)(std::uint32_t length);

/// Returns that function of the service called `name`; null if there is none.
inline ResponseLength response_length_of(std::string_view name) {
  ResponseLength found = nullptr;
  with_service(name, [&](auto service) { found = &decltype(service)::response_length; });
  return found;
}

/// Returns the names of all services, the default first.
inline std::vector<std::string_view> service_names() {
  return std::apply([](auto... service) { return std::vector<std::string_view>{service.kName...}; },
                    Services{});
}

}  // namespace offload::kernels
