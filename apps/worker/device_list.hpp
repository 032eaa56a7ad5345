#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"

namespace offload::worker {

/// For people: each device, and what it can do or why it cannot.
std::string device_list(const std::vector<device::Device>& devices);

}  // namespace offload::worker
