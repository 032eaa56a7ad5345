#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "apps/doctor/checks/checks.hpp"
#include "apps/doctor/checks/config_space.hpp"
#include "apps/doctor/checks/pair.hpp"
#include "device/device.hpp"

namespace offload::doctor {
namespace {

using Way = std::vector<std::string>;

constexpr const char* kAsRoot =
    "run offload-doctor as root: only root can read more than 64 bytes of it";

/// From the root complex down to a function, such as pci0000:00, 0000:00:01.0, 0000:01:00.0.
Way way_to(const Tree& tree, const std::string& address) {
  Way way;
  for (const auto& part : std::filesystem::path(tree.resolved(kPciDevices + address))) {
    const std::string name = part.string();
    if (name.starts_with("pci0") || device::is_pci_address(name)) way.push_back(name);
  }
  return way;
}

struct Ways {
  Way gpu;
  Way card;
  std::size_t common;  ///< entries that both begin with

  [[nodiscard]] bool below_one_switch() const noexcept { return common > 1; }
  /// The ports of the switches between the two.
  [[nodiscard]] Way bridges() const {
    Way between;
    for (const Way* way : {&gpu, &card}) {
      for (std::size_t i = common; i + 1 < way->size(); ++i) between.push_back((*way)[i]);
    }
    return between;
  }
};

Ways ways_of(const Tree& tree, const Pair& pair) {
  Ways ways{way_to(tree, pair.gpu), way_to(tree, pair.card), 0};
  const auto end = std::ranges::mismatch(ways.gpu, ways.card);
  ways.common = static_cast<std::size_t>(end.in1 - ways.gpu.begin());
  return ways;
}

bool is_virtual(const Tree& tree) {
  return tree.read("/proc/cpuinfo").value_or("").find(" hypervisor") != std::string::npos;
}

std::int64_t node_of(const Tree& tree, const std::string& address) {
  return tree.number(kPciDevices + address + "/numa_node").value_or(-1);
}

}  // namespace

Findings check_pair_path(const Tree& tree, const Pair& pair) {
  const char* const subject = "pci path";
  const Ways ways = ways_of(tree, pair);
  if (ways.gpu.empty() || ways.card.empty()) {
    return {{Severity::note, subject, "not readable: sysfs has no links to the two devices", "",
             "copy /sys with its links (cp -a), or run it on the machine itself"}};
  }
  if (ways.below_one_switch()) {
    return {{Severity::good, subject,
             fmt::format("one PCIe switch above both, {} bridges between", ways.bridges().size())}};
  }
  if (is_virtual(tree)) {
    return {{Severity::note, subject, "not readable: a virtual machine sees its hypervisor's bus",
             "", "nvidia-smi topo -m on the host"}};
  }
  const auto gpu_node = node_of(tree, pair.gpu);
  const auto card_node = node_of(tree, pair.card);
  const bool is_near = gpu_node == card_node;
  return {{is_near ? Severity::note : Severity::warning, subject,
           is_near ? gpu_node < 0 ? "through the root complex"
                                  : fmt::format("through the root complex of node {}", gpu_node)
                   : fmt::format("across processors: GPU on node {}, card on node {}", gpu_node,
                                 card_node),
           "one PCIe switch above both, for doorbells and payloads between GPU and card",
           "lspci -tv shows the slots: move one of the two, or use a pair that is closer"}};
}

Findings check_pair_acs(const Tree& tree, const Pair& pair) {
  const char* const subject = "pci access control";
  const Ways ways = ways_of(tree, pair);
  if (!ways.below_one_switch()) {
    return {{Severity::good, subject, "irrelevant: all traffic uses the root complex"}};
  }
  return {check_acs_of(tree, ways.bridges())};
}

Findings check_write_combining(const Tree& tree, const Pair& pair) {
  const char* const subject = "write combining";
  const std::string registers = kPciDevices + pair.card + "/resource0";
  if (tree.has(registers + "_wc")) {
    if (!is_virtual(tree))
      return {{Severity::good, subject, "supported for the registers of the card"}};
    return {
        {Severity::note, subject, "supported by the kernel; the driver tests it itself",
         "a doorbell register for each queue pair: the log of the worker says if they share one",
         ""}};
  }
  if (!tree.has(registers)) {
    return {{Severity::note, subject, "not readable: sysfs does not have the registers of the card",
             "", "run it on the machine itself, or copy /sys with all names"}};
  }
  return {
      {Severity::warning, subject,
       is_virtual(tree)
           ? "the kernel does not support it for the registers of the card, in a virtual machine"
           : "the kernel does not support it for the registers of the card",
       "supported: without it queue pairs share one doorbell register",
       is_virtual(tree) ? "let the host pass BAR 0 of the card through as prefetchable"
                        : "boot without nopat"}};
}

Findings check_relaxed_ordering(const Tree& tree, const Pair& pair) {
  const char* const subject = "relaxed ordering";
  switch (relaxed_ordering(tree.read_bytes(kPciDevices + pair.card + "/config"))) {
    case FeatureState::unreadable:
      return {{Severity::note, subject, "not readable: the card's configuration", "", kAsRoot}};
    case FeatureState::off: return {{Severity::good, subject, "off"}};
    case FeatureState::on: break;
  }
  return {
      {Severity::note, subject, "allowed on the bus",
       "PCI_WR_ORDERING per_mkey(0): only programs that request it get it, and this suite does not",
       fmt::format("mstconfig -d {} query PCI_WR_ORDERING", pair.card)}};
}

}  // namespace offload::doctor
