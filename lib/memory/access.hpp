#pragma once

#include <cstdint>
#include <string>

namespace offload::memory {

/// What may be done to a region's memory, and by whom: a set of flags. "Remote" is a peer over the
/// network; "peer PCIe" is another device of this machine that reads and writes by itself.
enum class Access : std::uint32_t {
  none = 0,
  local_read = 1U << 0,
  local_write = 1U << 1,
  remote_read = 1U << 2,
  remote_write = 1U << 3,
  remote_atomic = 1U << 4,
  peer_pcie = 1U << 5,
};

/// Every flag there is.
inline constexpr std::uint32_t kAccessFlags = (1U << 6) - 1;

constexpr Access operator|(Access a, Access b) noexcept {
  return static_cast<Access>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr Access operator&(Access a, Access b) noexcept {
  return static_cast<Access>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}

/// Whether all of `part` is in `whole`.
constexpr bool includes(Access whole, Access part) noexcept {
  return (whole & part) == part;
}

/// Whether any of `flags` is in `whole`.
constexpr bool has_any(Access whole, Access flags) noexcept {
  return (whole & flags) != Access::none;
}

inline constexpr Access kLocalAccess = Access::local_read | Access::local_write;
inline constexpr Access kRemoteAccess =
    Access::remote_read | Access::remote_write | Access::remote_atomic;

/// Throws Error (invalid_value) for a set that no memory can have: without local_read, with an
/// unknown flag, or with others allowed to write what its owner may not (devices refuse that too).
void check_access(Access access);

/// "local_read|remote_write"; "none".
std::string to_string(Access access);

}  // namespace offload::memory
