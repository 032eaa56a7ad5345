#include "rdma/path/local_path.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include "core/error.hpp"
#include "device/interfaces.hpp"

namespace offload::rdma {
namespace {

using core::Error;
using core::ErrorCode;

/// The bits of a P_Key with the partition; the other bit says whether the port is a full member
/// (IBTA volume 1, 10.9.1).
constexpr std::uint16_t kPartition = 0x7fff;

bool is_infiniband(const DeviceContext& device, std::uint8_t port) {
  return device.port(port).link_layer == IBV_LINK_LAYER_INFINIBAND;
}

/// The first port for which `is_it(number)`; 0 for none.
template <class Predicate>
std::uint8_t find_port(const DeviceContext& device, Predicate is_it) {
  for (unsigned number = 1; number <= device.attributes().phys_port_cnt; ++number) {
    const auto port = static_cast<std::uint8_t>(number);
    if (is_it(port)) return port;
  }
  return 0;
}

/// The port whose GID table has an entry that `rule` allows; 0 for none.
std::uint8_t port_with_gid(const DeviceContext& device, const GidRule& rule) {
  return find_port(device, [&](std::uint8_t port) {
    return std::ranges::any_of(device.gids(port),
                               [&](const ibv_gid_entry& entry) { return matches(entry, rule); });
  });
}

/// The port whose IP over InfiniBand has the address, which no GID table has; 0 for none.
std::uint8_t port_with_address(const DeviceContext& device, const ibv_gid& own) {
  if (find_port(device, [&](std::uint8_t port) { return is_infiniband(device, port); }) == 0) {
    return 0;
  }
  const std::string address = to_string(own);
  for (const device::Interface& interface : device::list_interfaces()) {
    const auto& addresses = interface.addresses;
    if (interface.rdma_device == device.name() &&
        std::ranges::find(addresses, address) != addresses.end()) {
      return static_cast<std::uint8_t>(interface.rdma_port);
    }
  }
  return 0;
}

std::uint16_t pkey_index(const DeviceContext& device, std::uint8_t port, std::uint16_t wanted) {
  const auto pkeys = device.pkeys(port);
  const auto has = [wanted](std::uint16_t mask) {
    return [wanted, mask](std::uint16_t pkey) { return ((pkey ^ wanted) & mask) == 0; };
  };
  auto found = std::ranges::find_if(pkeys, has(0xffff));
  if (found == pkeys.end()) found = std::ranges::find_if(pkeys, has(kPartition));
  if (found != pkeys.end()) return static_cast<std::uint16_t>(found - pkeys.begin());
  std::string there;
  for (const std::uint16_t pkey : pkeys) there += fmt::format(" 0x{:04x}", pkey);
  throw Error(ErrorCode::not_found, fmt::format("port {} of {} has no partition 0x{:04x}; it has{}",
                                                port, device.name(), wanted, there));
}

std::uint8_t system_traffic_class(const DeviceContext& device, std::uint8_t port,
                                  const std::filesystem::path& defaults) {
  std::ifstream file(defaults / device.name() / "ports" / std::to_string(port) /
                     "default_roce_tos");
  unsigned value = 0;
  return file >> value && value <= 255 ? static_cast<std::uint8_t>(value) : std::uint8_t{0};
}

}  // namespace

std::optional<PathOptions> path_at(const DeviceContext& device, const ibv_gid& own,
                                   std::uint32_t interface, const PathChoice& choice) {
  PathOptions path;
  GidRule rule;
  rule.address = own;
  rule.interface = interface;
  path.port_num = port_with_gid(device, rule);
  if (path.port_num != 0) {
    path.gid = rule;
  } else {
    path.port_num = port_with_address(device, own);
  }
  if (path.port_num == 0 && !choice.device.empty()) {
    path.port_num = find_port(
        device, [&](std::uint8_t port) { return device.port(port).state == IBV_PORT_ACTIVE; });
    if (path.port_num == 0) {
      throw Error(ErrorCode::not_connected, device.name() + " has no active port");
    }
  }
  if (path.port_num == 0) return std::nullopt;
  mark_path(device, choice, path);
  return path;
}

void mark_path(const DeviceContext& device, const PathChoice& choice, PathOptions& path,
               const std::filesystem::path& defaults) {
  const bool infiniband = is_infiniband(device, path.port_num);
  ibv_ah_attr& address = path.rtr.ah_attr;
  if (choice.gid_index) path.gid.index = choice.gid_index;
  address.grh.traffic_class = choice.traffic_class.value_or(
      infiniband ? std::uint8_t{0} : system_traffic_class(device, path.port_num, defaults));
  address.sl = choice.service_level.value_or(infiniband ? device.port(path.port_num).sm_sl
                                                        : std::uint8_t{0});
  if (choice.pkey) path.pkey_index = pkey_index(device, path.port_num, *choice.pkey);
}

std::string describe(const DeviceContext& device, const PathOptions& path) {
  const ibv_gid_entry gid = choose_gid(device.gids(path.port_num), path.gid);
  const auto pkeys = device.pkeys(path.port_num);
  const ibv_ah_attr& address = path.rtr.ah_attr;
  return fmt::format(
      "{} port {}, GID {} (index {}), traffic class {}, service level {}, partition {}",
      device.name(), path.port_num, to_string(gid.gid), gid.gid_index, address.grh.traffic_class,
      address.sl,
      path.pkey_index < pkeys.size() ? fmt::format("0x{:04x}", pkeys[path.pkey_index]) : "unknown");
}

}  // namespace offload::rdma
