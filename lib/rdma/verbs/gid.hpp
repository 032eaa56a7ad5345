#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace offload::rdma {

/// The kind of IP address that a GID holds.
enum class Family : std::uint8_t { any, ipv4, ipv6 };

/// ipv4 for an IPv4 address mapped into IPv6 (RFC 4291, 2.5.5.2), else ipv6.
Family family_of(const ibv_gid& gid) noexcept;
/// Returns whether it is in fe80::/10, which no router forwards.
bool is_link_local(const ibv_gid& gid) noexcept;
bool equal(const ibv_gid& a, const ibv_gid& b) noexcept;
/// Returns whether it is all zeroes.
inline bool is_unspecified(const ibv_gid& gid) noexcept {
  return gid.global.subnet_prefix == 0 && gid.global.interface_id == 0;
}
/// "10.77.0.1" for a mapped IPv4 address, else IPv6 notation.
std::string to_string(const ibv_gid& gid);
/// The GID of an IPv4 or IPv6 address. Throws Error (invalid_value).
ibv_gid parse_gid(std::string_view address);

/// Chooses an entry of a port's GID table, the source addresses of its packets. The default finds
/// the one that most networks route.
struct GidRule {
  Family family = Family::any;
  std::optional<ibv_gid> address;  ///< only the entry with this address
  /// RoCE v1 is not routed, and many networks drop it: taken only on request.
  bool roce_v1 = false;
  /// Only entries of this network interface, its index, or of one that is not told; 0: of any. Two
  /// interfaces of a port, such as a VLAN and the one below it, have the same link-local address.
  std::uint32_t interface = 0;
  /// Only the entry at this index, whatever else the rule says.
  std::optional<std::uint8_t> index{};
};

/// Returns whether the rule allows the entry.
bool matches(const ibv_gid_entry& entry, const GidRule& rule) noexcept;

/// The first entry of the best rank that the rule allows. RoCE entries rank by address: IPv4, then
/// IPv6 that is not link-local, then link-local. Throws Error (not_found), which lists the table.
ibv_gid_entry choose_gid(std::span<const ibv_gid_entry> table, const GidRule& rule);

}  // namespace offload::rdma
