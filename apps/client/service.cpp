#include "apps/client/service.hpp"

#include <algorithm>
#include <iterator>

namespace offload::client {
namespace {

/// Indexed by Service.
constexpr std::string_view kNames[] = {"reverse", "echo", "crc32c"};

std::vector<std::byte> little_endian(std::uint32_t value) {
  std::vector<std::byte> bytes;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<std::byte>((value >> shift) & 0xff));
  }
  return bytes;
}

}  // namespace

std::string_view name_of(Service service) noexcept {
  return kNames[static_cast<std::size_t>(service)];
}

const std::vector<std::string>& service_names() {
  static const std::vector<std::string> names(std::begin(kNames), std::end(kNames));
  return names;
}

std::optional<Service> service_named(std::string_view name) noexcept {
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Service>(found - std::begin(kNames));
}

std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
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

std::vector<std::byte> expected_response(Service service, std::span<const std::byte> request) {
  std::vector<std::byte> response(request.begin(), request.end());
  if (service == Service::crc32c) return little_endian(crc32c(request));
  if (service == Service::reverse) std::reverse(response.begin(), response.end());
  return response;
}

}  // namespace offload::client
