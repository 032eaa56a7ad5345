#pragma once

#include <string>
#include <vector>

#include "apps/doctor/finding.hpp"
#include "apps/doctor/tree.hpp"

/// Each check reads the tree, changes nothing and says what it found, at least one line.
namespace offload::doctor {

// The processor, the kernel and what it lets a process have (machine_checks.cpp).
Findings check_kernel(const Tree& tree);
Findings check_clock(const Tree& tree);
Findings check_governor(const Tree& tree);
Findings check_open_files(const Tree& tree);
Findings check_memory(const Tree& tree);
Findings check_threads(const Tree& tree);
Findings check_huge_pages(const Tree& tree);
Findings check_listen_backlog(const Tree& tree);
Findings check_af_xdp(const Tree& tree);

// GPUs and their driver (gpu_checks.cpp).
Findings check_gpu_driver(const Tree& tree, MachineRole role);
Findings check_gpus(const Tree& tree, MachineRole role);

// RDMA devices, their ports, and what a process needs for them (rdma_checks.cpp).
Findings check_rdma_devices(const Tree& tree, MachineRole role);
Findings check_rdma_nodes(const Tree& tree);
Findings check_locked_memory(const Tree& tree);
/// One port, by its number.
Finding check_port(const Tree& tree, const std::string& device, const std::string& number);

// Between a GPU and an RDMA device (path_checks.cpp).
Findings check_gpu_registration(const Tree& tree);
Findings check_register_mapping(const Tree& tree);
Findings check_iommu(const Tree& tree);
Findings check_acs(const Tree& tree);
/// Of these bridges alone.
Finding check_acs_of(const Tree& tree, const std::vector<std::string>& bridges);
Findings check_distance(const Tree& tree);

/// All of them.
Findings check_machine(const Tree& tree, MachineRole role);

// ---- What several of them look at

inline constexpr const char* kPciDevices = "/sys/bus/pci/devices/";
inline constexpr const char* kRdmaDevices = "/sys/class/infiniband/";

struct PciDevice {
  std::string address;  ///< 0000:01:00.0
  int numa_node;        ///< -1: not known
};

/// NVIDIA's display controllers, as the PCI bus has them, with a driver or without.
std::vector<PciDevice> gpus_of(const Tree& tree);
/// RDMA devices that are on a PCI bus.
std::vector<PciDevice> cards_of(const Tree& tree);

}  // namespace offload::doctor
