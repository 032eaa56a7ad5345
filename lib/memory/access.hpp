#pragma once

#include <cstdint>
#include <string>

namespace offload::memory {

/// Access rights to a region's memory, a set of flags. "remote": a peer over the network (the
/// IBV_ACCESS_REMOTE_* flags); "peer_pcie": another device of this machine, by peer-to-peer PCIe;
/// without local_write it only reads.
enum class Access : std::uint32_t {
  none = 0,
  local_read = 1U << 0,
  local_write = 1U << 1,
  remote_read = 1U << 2,
  remote_write = 1U << 3,
  remote_atomic = 1U << 4,
  peer_pcie = 1U << 5,
};

/// The bits of all flags.
inline constexpr std::uint32_t kAccessFlags = (1U << 6) - 1;

constexpr Access operator|(Access a, Access b) noexcept {
  return static_cast<Access>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr Access operator&(Access a, Access b) noexcept {
  return static_cast<Access>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}

/// Returns whether all flags of `part` are in `whole`.
constexpr bool includes(Access whole, Access part) noexcept {
  return (whole & part) == part;
}

inline constexpr Access kLocalAccess = Access::local_read | Access::local_write;
inline constexpr Access kRemoteAccess =
    Access::remote_read | Access::remote_write | Access::remote_atomic;

/// Throws Error (invalid_value) for a set that no memory can have: without local_read, with an
/// unknown flag, or with remote writes but without local_write (ibv_reg_mr(3) refuses that too).
void check_access(Access access);

/// The flags as text: "local_read|remote_write"; "none".
std::string to_string(Access access);

}  // namespace offload::memory
