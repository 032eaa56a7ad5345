#include "apps/client/service.hpp"

#include <algorithm>

namespace offload::client {
namespace {

constexpr Service kServices[] = {Service::reverse, Service::echo, Service::crc32c};

std::vector<std::byte> little_endian(std::uint32_t value) {
  std::vector<std::byte> bytes;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<std::byte>((value >> shift) & 0xff));
  }
  return bytes;
}

}  // namespace

std::string_view name_of(Service service) noexcept {
  switch (service) {
    case Service::reverse: return "reverse";
    case Service::echo: return "echo";
    case Service::crc32c: return "crc32c";
  }
  return "unknown";
}

const std::vector<std::string>& service_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Service service : kServices) list.emplace_back(name_of(service));
    return list;
  }();
  return names;
}

std::optional<Service> service_named(std::string_view name) noexcept {
  for (const Service service : kServices) {
    if (name_of(service) == name) return service;
  }
  return std::nullopt;
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
