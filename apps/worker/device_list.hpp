#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/representors.hpp"

namespace offload::worker {

/// For people: each device, and what it can do or why it cannot.
std::string device_list(const std::vector<device::Device>& devices);

/// The same of representors; empty if there are none, as without a SmartNIC.
std::string representor_list(const std::vector<device::Representor>& representors);

}  // namespace offload::worker
