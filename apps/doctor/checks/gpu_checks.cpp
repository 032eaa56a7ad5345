#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "apps/doctor/checks/checks.hpp"

namespace offload::doctor {
namespace {

Severity unless_wanted(MachineRole role, Severity otherwise = Severity::note) {
  return role == MachineRole::worker ? Severity::error : otherwise;
}

/// The line of /proc/driver/nvidia/version that names the driver.
std::string driver_of(const Tree& tree) {
  std::istringstream lines(tree.read("/proc/driver/nvidia/version").value_or(""));
  std::string line;
  std::getline(lines, line);
  const std::size_t colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(colon + 2);
}

}  // namespace

std::vector<PciDevice> gpus_of(const Tree& tree) {
  std::vector<PciDevice> gpus;
  for (const std::string& address : tree.names(kPciDevices)) {
    const std::string folder = kPciDevices + address;
    if (tree.read(folder + "/vendor") != "0x10de") continue;
    if (!tree.read(folder + "/class").value_or("").starts_with("0x03")) continue;
    gpus.push_back({address, static_cast<int>(tree.number(folder + "/numa_node").value_or(-1))});
  }
  return gpus;
}

Findings check_gpu_driver(const Tree& tree, MachineRole role) {
  const std::string driver = driver_of(tree);
  if (!driver.empty()) {
    Findings findings{{Severity::good, "gpu driver", driver}};
    for (const char* node : {"/dev/nvidiactl", "/dev/nvidia-uvm"}) {
      if (tree.has(node)) continue;
      findings.push_back({unless_wanted(role, Severity::warning), "gpu driver",
                          fmt::format("no {}", node), "CUDA opens the device",
                          "nvidia-modprobe -u -c 0, once after each boot"});
    }
    return findings;
  }
  if (gpus_of(tree).empty() && role != MachineRole::worker) {
    return {{Severity::note, "gpu driver", "none"}};
  }
  const bool has_nouveau = tree.has("/sys/module/nouveau");
  return {{unless_wanted(role, Severity::warning), "gpu driver",
           has_nouveau ? "nouveau, which does not support CUDA" : "none",
           "the driver of NVIDIA: without it the worker can use only CPU threads",
           "install the NVIDIA driver of the distribution"}};
}

Findings check_gpus(const Tree& tree, MachineRole role) {
  const auto gpus = gpus_of(tree);
  if (gpus.empty()) {
    const bool wanted = role == MachineRole::worker;
    return {{unless_wanted(role), "gpus", "none", wanted ? "at least one" : "",
             wanted ? "lspci -d 10de: lists the devices of the bus" : ""}};
  }
  Findings findings;
  for (const PciDevice& gpu : gpus) {
    const std::string subject = "gpu " + gpu.address;
    if (tree.has(kPciDevices + gpu.address + "/driver/module")) {
      findings.push_back({Severity::good, subject, "has a driver"});
    } else {
      findings.push_back({unless_wanted(role, Severity::warning), subject, "has no driver",
                          "the NVIDIA driver is bound to it", "modprobe nvidia; see dmesg"});
    }
  }
  return findings;
}

}  // namespace offload::doctor
