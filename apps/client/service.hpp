#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What the server does to a message, computed a second time: as simply as possible, and sharing
/// no code with the worker, so that the two cannot be wrong together.
namespace offload::client {

enum class Service : std::uint8_t { reverse, echo, crc32c };

/// "reverse", "echo", "crc32c"
std::string_view name_of(Service service) noexcept;

/// The names that service_named knows.
const std::vector<std::string>& service_names();

std::optional<Service> service_named(std::string_view name) noexcept;

/// CRC-32C (Castagnoli) of `bytes`, bit by bit.
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

/// The response that `request` must get: its bytes in reverse order; the same bytes; its CRC-32C as
/// 4 bytes, little endian.
std::vector<std::byte> expected_response(Service service, std::span<const std::byte> request);

}  // namespace offload::client
