#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The client's own implementation of the services, to check responses with. It is as simple as
/// possible and shares no code with the worker, so that an error cannot be in both.
namespace offload::client {

enum class Service : std::uint8_t { reverse, echo, crc32c };

/// "reverse", "echo", "crc32c"
std::string_view name_of(Service service) noexcept;

/// The names of all services.
const std::vector<std::string>& service_names();

/// The service with that name, if there is one.
std::optional<Service> service_named(std::string_view name) noexcept;

/// CRC-32C (Castagnoli) of `bytes`, bit by bit.
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

/// The expected response to `request`. reverse: its bytes in reverse order; echo: the same bytes;
/// crc32c: its CRC-32C as 4 bytes, little endian.
std::vector<std::byte> expected_response(Service service, std::span<const std::byte> request);

}  // namespace offload::client
