#include "rdma/path/path_choice.hpp"

#include <fmt/core.h>

#include <string_view>

#include "cli/options.hpp"
#include "core/units.hpp"

namespace offload::rdma {
namespace {

/// A whole number, decimal or hexadecimal ("0x8001").
template <class Integer>
cli::Option add_number(cli::CommandLine& line, const std::string& name,
                       std::optional<Integer>& value, Integer lowest, Integer highest,
                       const std::string& description) {
  const auto read = [lowest, highest](const std::string& text) -> std::optional<Integer> {
    std::string_view digits = text;
    const bool hexadecimal = digits.starts_with("0x");
    if (hexadecimal) digits.remove_prefix(2);
    const auto number = core::parse_number<Integer>(digits, hexadecimal ? 16 : 10);
    return number && *number >= lowest && *number <= highest ? number : std::nullopt;
  };
  return cli::add(
      line, name + " NUMBER", value, read,
      fmt::format("a whole number from {} to {}, decimal or as 0x{:x}", lowest, highest, highest),
      description);
}

}  // namespace

void add_path_options(cli::CommandLine& line, PathChoice& choice) {
  add_number<std::uint8_t>(
      line, "--gid-index", choice.gid_index, 0, 255,
      "Use this entry of the RDMA port's GID table. Default: the entry of the address");
  add_number<std::uint8_t>(line, "--traffic-class", choice.traffic_class, 0, 255,
                           "Set the traffic class of RDMA packets, 4 x DSCP. Default: that of "
                           "rdma_cm for RoCE (default_roce_tos) if it can be read, else 0");
  add_number<std::uint8_t>(line, "--service-level", choice.service_level, 0, 15,
                           "Set the service level, or priority, of RDMA packets. Default: over "
                           "InfiniBand the subnet manager's, else 0");
  add_number<std::uint16_t>(line, "--pkey", choice.pkey, 1, 0xffff,
                            "Set the partition key of RDMA packets. Default: the port's first");
}

}  // namespace offload::rdma
