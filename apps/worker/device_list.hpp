#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/interfaces.hpp"
#include "device/representors.hpp"

namespace offload::worker {

/// A text for people: each device with its capabilities, or why it lacks them.
std::string device_list(const std::vector<device::Device>& devices);

/// The same for network interfaces, RDMA or not.
std::string interface_list(const std::vector<device::Interface>& interfaces);

/// The same for representors; empty if there are none, as on a machine without a SmartNIC.
std::string representor_list(const std::vector<device::Representor>& representors);

}  // namespace offload::worker
