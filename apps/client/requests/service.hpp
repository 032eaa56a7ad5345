#pragma once

#include <endian.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The client's own implementation of the services, to check responses with. It is as simple as
/// possible and shares no code with the worker, so that an error cannot be in both.
namespace offload::client {

/// Indexed by Service.
inline constexpr std::string_view kServiceNames[] = {"reverse", "echo", "crc32c"};

enum class Service : std::uint8_t { reverse, echo, crc32c };

/// "reverse", "echo", "crc32c"
inline std::string_view name_of(Service service) noexcept {
  return kServiceNames[static_cast<std::size_t>(service)];
}

/// The names of all services.
inline const std::vector<std::string>& service_names() {
  static const std::vector<std::string> names(std::begin(kServiceNames), std::end(kServiceNames));
  return names;
}

/// The service with that name, if there is one.
inline std::optional<Service> service_named(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kServiceNames, name);
  if (found == std::end(kServiceNames)) return std::nullopt;
  return static_cast<Service>(found - std::begin(kServiceNames));
}

/// CRC-32C (Castagnoli) of `bytes`, bit by bit.
inline std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint32_t kReflectedPolynomial = 0x82f6'3b78;
  std::uint32_t crc = 0xffff'ffff;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    }
  }
  return ~crc;
}

/// The expected response to `request`. reverse: its bytes in reverse order; echo: the same bytes;
/// crc32c: its CRC-32C as 4 bytes, little endian.
inline std::vector<std::byte> expected_response(Service service,
                                                std::span<const std::byte> request) {
  std::vector<std::byte> response(request.begin(), request.end());
  if (service == Service::crc32c) {
    const std::uint32_t checksum = htole32(crc32c(request));
    const auto bytes = std::as_bytes(std::span(&checksum, 1));
    response.assign(bytes.begin(), bytes.end());
  }
  if (service == Service::reverse) std::reverse(response.begin(), response.end());
  return response;
}

}  // namespace offload::client
