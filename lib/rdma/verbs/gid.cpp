#include "rdma/verbs/gid.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.hpp"

namespace offload::rdma {
namespace {

constexpr std::size_t kGidBytes = sizeof(ibv_gid::raw);
constexpr std::array<std::uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/// The lowest is chosen.
int rank(const ibv_gid_entry& entry) noexcept {
  if (entry.gid_type == IBV_GID_TYPE_IB) return 0;
  if (family_of(entry.gid) == Family::ipv4) return 0;
  return is_link_local(entry.gid) ? 2 : 1;
}

const char* type_of(const ibv_gid_entry& entry) noexcept {
  if (entry.gid_type == IBV_GID_TYPE_IB) return "InfiniBand";
  return entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1" : "RoCE v2";
}

std::string listed(std::span<const ibv_gid_entry> table) {
  std::string text;
  for (const ibv_gid_entry& entry : table) {
    if (!text.empty()) text += ", ";
    text +=
        std::to_string(entry.gid_index) + " " + to_string(entry.gid) + " (" + type_of(entry) + ")";
  }
  return text.empty() ? "it has no GID" : "it has " + text;
}

}  // namespace

Family family_of(const ibv_gid& gid) noexcept {
  return std::memcmp(gid.raw, kMappedPrefix.data(), kMappedPrefix.size()) == 0 ? Family::ipv4
                                                                               : Family::ipv6;
}

bool equal(const ibv_gid& a, const ibv_gid& b) noexcept {
  return std::memcmp(a.raw, b.raw, kGidBytes) == 0;
}

bool is_link_local(const ibv_gid& gid) noexcept {
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

std::string to_string(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool mapped = family_of(gid) == Family::ipv4;
  ::inet_ntop(mapped ? AF_INET : AF_INET6, gid.raw + (mapped ? kMappedPrefix.size() : 0),
              text.data(), text.size());
  return text.data();
}

ibv_gid parse_gid(std::string_view address) {
  const std::string text(address);
  ibv_gid gid{};
  if (::inet_pton(AF_INET6, text.c_str(), gid.raw) == 1) return gid;
  std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), gid.raw);
  if (::inet_pton(AF_INET, text.c_str(), gid.raw + kMappedPrefix.size()) == 1) return gid;
  throw core::Error(core::ErrorCode::invalid_value,
                    "'" + text + "' is not a GID: expected an IPv4 or IPv6 address");
}

bool matches(const ibv_gid_entry& entry, const GidRule& rule) noexcept {
  if (rule.index) return entry.gid_index == *rule.index;
  if (rule.address && !equal(*rule.address, entry.gid)) return false;
  if (rule.interface != 0 && entry.ndev_ifindex != 0 && entry.ndev_ifindex != rule.interface) {
    return false;
  }
  if (entry.gid_type == IBV_GID_TYPE_IB) return true;
  if (rule.roce_v1 != (entry.gid_type == IBV_GID_TYPE_ROCE_V1)) return false;
  return rule.family == Family::any || rule.family == family_of(entry.gid);
}

ibv_gid_entry choose_gid(std::span<const ibv_gid_entry> table, const GidRule& rule) {
  const ibv_gid_entry* best = nullptr;
  for (const ibv_gid_entry& entry : table) {
    if (matches(entry, rule) && (best == nullptr || rank(entry) < rank(*best))) best = &entry;
  }
  if (best == nullptr) {
    throw core::Error(core::ErrorCode::not_found,
                      "the port has no GID of the requested kind: " + listed(table));
  }
  return *best;
}

}  // namespace offload::rdma
