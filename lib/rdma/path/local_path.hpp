#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "rdma/path/pairing.hpp"
#include "rdma/path/path_choice.hpp"

/// The local end of a connection's queue pairs: port, GID and the marks of packets.
namespace offload::rdma {

/// The folder of the defaults of `rdma_cm` (Documentation/ABI/testing/configfs-rdma_cm).
inline const std::filesystem::path kCmDefaults = "/sys/kernel/config/rdma_cm";

/// Returns the path, from `device`, of queue pairs beside a connection whose own address is `own`;
/// nothing if no port of the device has that address. `interface`: the network interface that has
/// it, as of GidRule. A device that `choice` names needs not have it: then its first active port is
/// taken. Throws Error: not_found for a partition that the port
/// does not have, the device's errors.
std::optional<PathOptions> path_at(const DeviceContext& device, const ibv_gid& own,
                                   std::uint32_t interface, const PathChoice& choice);

/// Sets on `path`, whose port is chosen, what `choice` says. Traffic class and service level that
/// it does not choose are the system's: the default_roce_tos that `defaults` has for the port, and
/// over InfiniBand the service level of the subnet manager. Throws Error as path_at().
void mark_path(const DeviceContext& device, const PathChoice& choice, PathOptions& path,
               const std::filesystem::path& defaults = kCmDefaults);

/// "mlx5_0 port 1, GID 10.0.0.1 (index 3), traffic class 106, service level 0, partition 0xffff".
/// Throws Error: not_found if the port does not have the GID.
std::string describe(const DeviceContext& device, const PathOptions& path);

}  // namespace offload::rdma
