#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include "core/error.hpp"
#include "device/device.hpp"

/// The data of sysfs about devices.
namespace offload::device {

/// Throws Error if that error is the process's own limit of open files: a device that cannot be
/// read for that reason is there.
inline void require_descriptors(const std::filesystem::path& path, int errnum) {
  if (errnum == EMFILE) core::throw_errno("cannot read " + path.string(), errnum);
}

/// The line in an attribute; empty where there is none, or the driver gives none. Throws Error.
inline std::string attribute(const std::filesystem::path& path) {
  std::string line;
  errno = 0;
  std::ifstream file(path);
  if (!file) require_descriptors(path, errno);
  std::getline(file, line);
  return line;
}

/// Returns the NUMA node of the device with this folder; -1 where the kernel names none.
inline int numa_node_of(const std::filesystem::path& device) {
  std::ifstream file(device / "numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

/// Returns the folder of the card of `device`, which may be some levels up: a subfunction's parent
/// is an auxiliary device, an interface's may be virtio's. Empty for a device on no bus.
inline std::filesystem::path card_of(const std::filesystem::path& device) {
  std::error_code error;
  for (auto path = std::filesystem::canonical(device, error); path.has_relative_path();
       path = path.parent_path()) {
    if (is_pci_address(path.filename().string())) return path;
  }
  return {};
}

/// Returns the PCI address of the card; empty for a device on no bus.
inline std::string card_address(const std::filesystem::path& device) {
  return card_of(device).filename().string();
}

/// Returns the kind of function of `device`, the "device" link of an interface or RDMA device: a VF
/// links to its PF (physfn, sysfs-bus-pci), an SF is an auxiliary device such as mlx5_core.sf.4.
/// Nothing for a device on no bus.
inline std::optional<FunctionKind> function_kind(const std::filesystem::path& device) {
  std::error_code error;
  const auto card = card_of(device);
  if (card.empty()) return std::nullopt;
  const std::string name = std::filesystem::canonical(device, error).filename().string();
  if (name.find(".sf.") != std::string::npos) return FunctionKind::subfunction;
  return std::filesystem::exists(card / "physfn", error) ? FunctionKind::virtual_
                                                         : FunctionKind::physical;
}

}  // namespace offload::device
