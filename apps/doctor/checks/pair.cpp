#include "apps/doctor/checks/pair.hpp"

#include <fmt/ranges.h>

#include <filesystem>

#include "apps/doctor/checks/checks.hpp"
#include "core/error.hpp"
#include "device/sysfs.hpp"

namespace offload::doctor {
namespace {

bool is_address(const std::string& address, const std::string& said) {
  return address == said || address == "0000:" + said;
}

std::string gpu_named(const Tree& tree, const std::string& said) {
  if (said == "-") return {};
  std::vector<std::string> known;
  for (const PciDevice& gpu : gpus_of(tree)) {
    if (is_address(gpu.address, said)) return gpu.address;
    known.push_back(gpu.address);
  }
  throw core::Error(
      core::ErrorCode::not_found,
      fmt::format("no GPU has the PCI address '{}'; this machine has {}; '-' means no GPU", said,
                  known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

/// The interface of the first port's GIDs, else the first of the function.
std::string interface_of(const Tree& tree, const std::string& device) {
  const std::string owners = kRdmaDevices + device + "/ports/1/gid_attrs/ndevs/";
  for (const std::string& index : tree.names(owners)) {
    const auto name = tree.read(owners + index);
    if (name && !name->empty()) return *name;
  }
  const auto names = tree.names(kRdmaDevices + device + "/device/net");
  return names.empty() ? std::string() : names.front();
}

}  // namespace

Pair find_pair(const Tree& tree, const std::string& gpu, const std::string& nic) {
  Pair pair{gpu_named(tree, gpu), {}, {}, {}};
  const std::string behind_interface = tree.resolved("/sys/class/net/" + nic + "/device");
  const auto devices = tree.names(kRdmaDevices);
  for (const std::string& device : devices) {
    const std::string link = kRdmaDevices + device + "/device";
    const std::string function = tree.resolved(link);
    pair.interface = interface_of(tree, device);
    const bool is_meant = device == nic || pair.interface == nic ||
                          is_address(std::filesystem::path(function).filename(), nic) ||
                          (!function.empty() && function == behind_interface);
    if (!is_meant) continue;
    pair.device = device;
    pair.card = device::card_address(tree.root() + link);
    return pair;
  }
  throw core::Error(
      core::ErrorCode::not_found,
      fmt::format("'{}' is not an RDMA device, nor an interface or PCI address of one; there {}",
                  nic,
                  devices.empty() ? "are no RDMA devices: modprobe mlx5_ib"
                                  : fmt::format("are {}", fmt::join(devices, ", "))));
}

Findings check_pair(const Tree& tree, const Pair& pair) {
  Findings all = check_bluefield(tree, pair);
  const auto add = [&all](const Findings& some) {
    all.insert(all.end(), some.begin(), some.end());
  };
  for (const std::string& port : tree.names(kRdmaDevices + pair.device + "/ports")) {
    all.push_back(check_port(tree, pair.device, port));
  }
  if (!pair.gpu.empty()) {
    for (const auto check : {check_pair_path, check_pair_acs, check_write_combining}) {
      add(check(tree, pair));
    }
    add(check_register_mapping(tree));
    add(check_gpu_registration(tree));
  }
  for (const auto check : {check_relaxed_ordering, check_adaptive_routing, check_traffic_class}) {
    add(check(tree, pair));
  }
  return all;
}

}  // namespace offload::doctor
