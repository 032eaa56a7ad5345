#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace offload::cli {
class CommandLine;
}

namespace offload::rdma {

/// The user's choices for the paths of a program's queue pairs. Unset ones follow from the address
/// of the connection that the pairs belong to, and from the system (local_path.hpp).
struct PathChoice {
  std::string device{};  ///< as device::find() takes it
  std::optional<std::uint8_t> gid_index{};
  std::optional<std::uint8_t> traffic_class{};
  std::optional<std::uint8_t> service_level{};
  std::optional<std::uint16_t> pkey{};  ///< the partition's key, not its index

  friend bool operator==(const PathChoice&, const PathChoice&) = default;
};

/// Adds --gid-index, --traffic-class, --service-level and --pkey.
void add_path_options(cli::CommandLine& line, PathChoice& choice);

}  // namespace offload::rdma
