#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace offload::device {

/// A network interface of this machine, with or without RDMA, as it was found.
struct Interface {
  std::string name;                      ///< "eth0"
  std::string mac;                       ///< "52:54:00:12:34:56"; longer over InfiniBand
  std::vector<std::string> addresses;    ///< IPv4 first
  std::uint32_t mtu = 0;                 ///< bytes
  bool up = false;                       ///< it has a link
  std::string pci_address;               ///< of its card; empty for a virtual one
  std::optional<FunctionKind> function;  ///< of that card
  std::string rdma_device;               ///< that has the same port, "mlx5_0"; empty: none
  std::uint32_t rdma_port = 0;           ///< of that device, from 1

  /// "eth0 52:54:00:12:34:56, PF at 0000:03:00.0, RDMA device mlx5_0"
  [[nodiscard]] std::string describe() const;
};

/// The Ethernet and InfiniBand interfaces of this machine, by name, without the loopback.
/// `interfaces`: a folder as sysfs has it; addresses are those of this machine. Interfaces that go
/// away meanwhile are left out. Any thread.
std::vector<Interface> list_interfaces(const std::filesystem::path& interfaces = "/sys/class/net");

}  // namespace offload::device
