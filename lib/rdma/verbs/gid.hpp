#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace offload::rdma {

enum class GidType : std::uint8_t { infiniband, roce_v1, roce_v2 };

/// What kind of address a GID holds.
enum class Family : std::uint8_t { any, ipv4, ipv6 };

/// One entry of a port's table: an address that packets leave from.
struct Gid {
  ibv_gid value{};
  std::uint8_t index = 0;  ///< in the table
  GidType type = GidType::infiniband;
};

/// Of an IPv4 address mapped into IPv6, ipv4; else ipv6.
Family family_of(const ibv_gid& gid) noexcept;
/// Of one network only: fe80::/10.
bool is_link_local(const ibv_gid& gid) noexcept;
bool equal(const ibv_gid& a, const ibv_gid& b) noexcept;
/// All zeroes: none.
bool is_unspecified(const ibv_gid& gid) noexcept;
/// "10.77.0.1" of a mapped IPv4 address, else as IPv6 is written.
std::string to_string(const ibv_gid& gid);
/// Of an IPv4 or IPv6 address. Throws Error (invalid_value).
ibv_gid parse_gid(std::string_view address);

/// Which entry of a table is wanted. As it stands: the one that most networks route.
struct GidRule {
  Family family = Family::any;
  /// Only this one.
  std::optional<ibv_gid> address;
  /// RoCE v1 is not routed, and many networks drop it: taken only if asked for.
  bool roce_v1 = false;
};

/// The entry that the rule means; among several RoCE ones an IPv4 address, then an IPv6 address
/// that is not link-local, then a link-local one, the first of each. Throws Error (not_found) with
/// what the table has.
Gid choose_gid(std::span<const Gid> table, const GidRule& rule);

}  // namespace offload::rdma
