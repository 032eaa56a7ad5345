#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/interfaces.hpp"
#include "device/representors.hpp"

namespace offload::worker {

inline std::string describe(const device::Device& device) {
  std::string text = device.describe() + "\n";
  if (device.memory != 0) {
    text += fmt::format("  memory {:.1f} GiB\n", static_cast<double>(device.memory) / (1U << 30));
  }
  if (device.function) text += fmt::format("  function {}\n", name_of(*device.function));
  if (device.numa_node >= 0) text += fmt::format("  NUMA node {}\n", device.numa_node);
  for (std::size_t i = 0; i < device::kCapabilities; ++i) {
    const auto capability = static_cast<device::Capability>(i);
    const auto support = device::supports(device, capability);
    text += fmt::format("  {:<20} {}\n", device::name_of(capability),
                        support ? "yes" : "no: " + support.reason);
  }
  return text;
}

/// A text for people: each device with its capabilities, or why it lacks them.
inline std::string device_list(const std::vector<device::Device>& devices) {
  std::string text;
  for (const auto& device : devices) text += describe(device);
  const auto has = [&](device::Kind kind) {
    return std::ranges::any_of(devices, [&](const auto& device) { return device.kind == kind; });
  };
  if (!has(device::Kind::gpu)) text += "no GPU: " + device::list_gpus().why_none + "\n";
  if (!has(device::Kind::rdma))
    text += "no RDMA device: " + device::list_rdma_devices().why_none + "\n";
  return text;
}

/// The same for network interfaces, RDMA or not.
inline std::string interface_list(const std::vector<device::Interface>& interfaces) {
  std::string text;
  for (const auto& interface : interfaces) {
    text += fmt::format("interface {}\n  MTU {}, {}\n", interface.describe(), interface.mtu,
                        interface.up ? "up" : "down");
  }
  return text;
}

/// The same for representors; empty if there are none, as on a machine without a SmartNIC.
inline std::string representor_list(const std::vector<device::Representor>& representors) {
  std::string text;
  for (const auto& representor : representors) {
    text += fmt::format("representor {}\n  port {}, device port {}, switch {}\n",
                        representor.describe(), representor.port_name, representor.dev_port,
                        representor.switch_id);
  }
  return text;
}

}  // namespace offload::worker
