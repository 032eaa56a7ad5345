#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "apps/doctor/checks/checks.hpp"
#include "apps/doctor/checks/config_space.hpp"
#include "device/peer_mapping.hpp"

namespace offload::doctor {
namespace {

bool has_both(const Tree& tree) {
  return !gpus_of(tree).empty() && !cards_of(tree).empty();
}

Finding nothing_to_check(const char* subject) {
  return {Severity::note, subject, "no pair of a GPU and an RDMA card"};
}

bool is_bridge(const Tree& tree, const std::string& address) {
  return tree.read(kPciDevices + address + "/class").value_or("").starts_with("0x0604");
}

/// The line of /sys/devices/system/node/nodeN/distance, by node.
std::optional<int> distance_between(const Tree& tree, int one, int other) {
  std::istringstream words(
      tree.read(fmt::format("/sys/devices/system/node/node{}/distance", one)).value_or(""));
  int distance = 0;
  for (int node = 0; words >> distance; ++node) {
    if (node == other) return distance;
  }
  return std::nullopt;
}

}  // namespace

Findings check_gpu_registration(const Tree& tree) {
  if (!has_both(tree)) return {nothing_to_check("gpu memory to card")};
  const bool has_module = tree.has("/sys/module/nvidia_peermem");
  const bool is_open = tree.read("/proc/driver/nvidia/version").value_or("").find("Open Kernel") !=
                       std::string::npos;
  if (is_open) {
    return {{Severity::good, "gpu memory to card", "dma-buf, of the open driver"}};
  }
  if (has_module) {
    return {{Severity::good, "gpu memory to card", "the module nvidia_peermem"}};
  }
  return {{Severity::warning, "gpu memory to card",
           "neither a driver with dma-buf nor the module nvidia_peermem",
           "one of the two: otherwise messages go through pinned host memory",
           "modprobe nvidia_peermem, or install the open driver of NVIDIA"}};
}

Findings check_register_mapping(const Tree& tree) {
  const char* const subject = "card registers to gpu";
  if (!has_both(tree)) return {nothing_to_check(subject)};
  const auto is_set = device::peer_mapping_override(tree.root());
  if (!is_set) {
    return {{Severity::note, subject, "not readable: no /proc/driver/nvidia/params", "",
             "modprobe nvidia"}};
  }
  if (*is_set) return {{Severity::good, subject, "PeerMappingOverride=1"}};
  return {{Severity::warning, subject, "PeerMappingOverride=1 is not set",
           "set: otherwise a thread rings the doorbell of the card, unless the worker runs as root",
           "echo 'options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\"' "
           ">/etc/modprobe.d/nvidia-peer-mapping.conf; update-initramfs -u; reboot"}};
}

Findings check_iommu(const Tree& tree) {
  const auto groups = tree.names("/sys/kernel/iommu_groups");
  if (groups.empty()) return {{Severity::good, "iommu", "off"}};
  const auto translated = std::ranges::count_if(groups, [&](const auto& group) {
    const auto type = tree.read("/sys/kernel/iommu_groups/" + group + "/type");
    return type && type != "identity";
  });
  const std::string found =
      fmt::format("{} of {} groups translate addresses", translated, groups.size());
  if (translated == 0) return {{Severity::good, "iommu", found}};
  return {{has_both(tree) ? Severity::warning : Severity::note, "iommu", found,
           "none, if a card accesses a GPU: translation slows both down", "boot with iommu=pt"}};
}

Finding check_acs_of(const Tree& tree, const std::vector<std::string>& bridges) {
  const char* const subject = "pci access control";
  std::vector<std::string> redirecting;
  std::vector<std::string> commands;
  std::string unreadable;
  for (const std::string& address : bridges) {
    const FeatureState acs = acs_redirects(tree.read_bytes(kPciDevices + address + "/config"));
    if (acs == FeatureState::unreadable) unreadable = address;
    if (acs != FeatureState::on) continue;
    redirecting.push_back(address);
    commands.push_back(fmt::format("setpci -s {} ECAP_ACS+6.w=0000", address));
  }
  if (!redirecting.empty()) {
    return {Severity::warning, subject,
            fmt::format("{} of {} bridges redirect: {}", redirecting.size(), bridges.size(),
                        fmt::join(redirecting, ", ")),
            "none: redirected writes of a card to a GPU go through the root complex",
            fmt::format("{} (after each boot)", fmt::join(commands, "; "))};
  }
  if (!unreadable.empty()) {
    return {Severity::note, subject, "not readable: the configuration of bridge " + unreadable, "",
            "run it as root: only root can read more than 64 bytes of it"};
  }
  return {Severity::good, subject, fmt::format("none of {} bridges redirects", bridges.size())};
}

Findings check_acs(const Tree& tree) {
  if (!has_both(tree)) return {nothing_to_check("pci access control")};
  auto bridges = tree.names(kPciDevices);
  std::erase_if(bridges, [&](const std::string& address) { return !is_bridge(tree, address); });
  return {check_acs_of(tree, bridges)};
}

Findings check_distance(const Tree& tree) {
  const auto gpus = gpus_of(tree);
  const auto cards = cards_of(tree);
  if (gpus.empty() || cards.empty()) return {nothing_to_check("gpu near card")};
  Findings findings;
  for (const PciDevice& gpu : gpus) {
    const auto near = std::ranges::find(cards, gpu.numa_node, &PciDevice::numa_node);
    const std::string subject = fmt::format("gpu {} near card", gpu.address);
    if (near != cards.end()) {
      findings.push_back({Severity::good, subject,
                          fmt::format("{} is on its node {}", near->address, gpu.numa_node)});
      continue;
    }
    const auto distance = distance_between(tree, gpu.numa_node, cards.front().numa_node);
    findings.push_back(
        {Severity::warning, subject,
         fmt::format(
             "node {}, the cards on other nodes{}", gpu.numa_node,
             distance ? fmt::format(", {} at distance {}", cards.front().address, *distance) : ""),
         "a card on the same node: otherwise every message crosses between processors",
         "use a GPU on the node of the card (-g), or move the card"});
  }
  return findings;
}

Findings check_machine(const Tree& tree, MachineRole role, const Live& live) {
  Findings all;
  for (const Findings& some : {check_kernel(tree),
                               check_clock(tree),
                               check_clock_discipline(live.clock),
                               check_governor(tree),
                               check_turbo(tree),
                               check_siblings(tree),
                               check_load(tree),
                               check_processor_time(tree, live.wait),
                               check_limits(tree, live.units),
                               check_listen_backlog(tree),
                               check_huge_pages(tree),
                               check_af_xdp(tree),
                               check_gpu_driver(tree, role),
                               check_gpus(tree, role),
                               check_rdma_devices(tree, role),
                               check_rdma_nodes(tree),
                               check_gpu_registration(tree),
                               check_register_mapping(tree),
                               check_iommu(tree),
                               check_acs(tree),
                               check_distance(tree)}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace offload::doctor
