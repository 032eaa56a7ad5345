#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

/// Reference results for the services of kernels/services/, computed in another way.
namespace offload::kernels::test {

using Octets = std::vector<std::uint8_t>;

/// Returns random octets, the same for the same length.
inline Octets random_octets(std::size_t length) {
  std::minstd_rand random(static_cast<std::uint32_t>(length) + 1);
  Octets octets(length);
  for (auto& octet : octets) octet = static_cast<std::uint8_t>(random() >> 8);
  return octets;
}

/// Returns the CRC-32C, computed one bit after the other.
inline std::uint32_t crc32c_of(const Octets& message) {
  std::uint32_t crc = 0xffff'ffff;
  for (const std::uint8_t octet : message) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool carry = ((crc ^ (octet >> bit)) & 1U) != 0;
      crc = (crc >> 1) ^ (carry ? 0x82f6'3b78U : 0U);
    }
  }
  return ~crc;
}

/// Returns the response of service `name` to `request`.
inline Octets expected_response(std::string_view name, const Octets& request) {
  if (name == "echo") return request;
  if (name == "reverse") {
    Octets response = request;
    std::reverse(response.begin(), response.end());
    return response;
  }
  if (name == "crc32c") {
    const std::uint32_t crc = crc32c_of(request);
    return {static_cast<std::uint8_t>(crc), static_cast<std::uint8_t>(crc >> 8),
            static_cast<std::uint8_t>(crc >> 16), static_cast<std::uint8_t>(crc >> 24)};
  }
  const std::string text = "no reference for service " + std::string(name);
  return {text.begin(), text.end()};
}

}  // namespace offload::kernels::test
