#pragma once

#include <sys/timex.h>

#include <functional>
#include <map>
#include <optional>
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
Findings check_huge_pages(const Tree& tree);
Findings check_listen_backlog(const Tree& tree);
Findings check_af_xdp(const Tree& tree);

// Noise in measurements (measurement_checks.cpp).
/// Steal time and other processes: between two readings, with `wait` in between, or since the boot.
Findings check_processor_time(const Tree& tree, const std::function<void()>& wait);
Findings check_load(const Tree& tree);
Findings check_siblings(const Tree& tree);
Findings check_turbo(const Tree& tree);
/// `clock`: the state that adjtimex(2) returned.
Findings check_clock_discipline(const std::optional<timex>& clock);

// Limits of units and processes (limit_checks.cpp).
/// A unit or process whose limits are checked.
struct LimitHolder {
  std::string name;                               ///< with the source of the limits
  std::string process;                            ///< its name in /proc; empty: it does not run
  std::map<std::string, std::string> settings{};  ///< of the unit, such as LimitNOFILE
};
/// The units in `units`, what systemctl show prints of them; else the processes of the suite; else
/// the files of its units; else this process.
std::vector<LimitHolder> limit_holders(const Tree& tree, const std::string& units);
Findings check_open_files(const Tree& tree, const LimitHolder& holder);
Findings check_memory(const Tree& tree, const LimitHolder& holder);
Findings check_threads(const Tree& tree, const LimitHolder& holder);
Findings check_locked_memory(const Tree& tree, const LimitHolder& holder);
/// All of these, for each holder.
Findings check_limits(const Tree& tree, const std::string& units);

// GPUs and their driver (gpu_checks.cpp).
Findings check_gpu_driver(const Tree& tree, MachineRole role);
Findings check_gpus(const Tree& tree, MachineRole role);

// RDMA devices, their ports, and what a process needs for them (rdma_checks.cpp).
Findings check_rdma_devices(const Tree& tree, MachineRole role);
Findings check_rdma_nodes(const Tree& tree);
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

/// The state of this machine that no file has; empty for a copy of the files of another one.
struct Live {
  std::function<void()> wait{};  ///< waits while the processors' time is measured
  std::optional<timex> clock{};  ///< the state that adjtimex(2) returns
  std::string units{};           ///< what systemctl show prints of the units of the suite
};

/// All of them.
Findings check_machine(const Tree& tree, MachineRole role, const Live& live = {});

// ---- What several of them look at

inline constexpr const char* kPciDevices = "/sys/bus/pci/devices/";
inline constexpr const char* kRdmaDevices = "/sys/class/infiniband/";

/// Processes that are server or worker, by their names in /proc.
std::vector<std::string> processes_of_suite(const Tree& tree);

struct PciDevice {
  std::string address;  ///< 0000:01:00.0
  int numa_node;        ///< -1: not known
};

/// NVIDIA's display controllers, as the PCI bus has them, with a driver or without.
std::vector<PciDevice> gpus_of(const Tree& tree);
/// RDMA devices that are on a PCI bus.
std::vector<PciDevice> cards_of(const Tree& tree);

}  // namespace offload::doctor
