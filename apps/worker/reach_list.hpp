#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"

namespace offload::worker {

/// A text for people: how each network card reaches the memory of each GPU, which is tried; empty
/// without a card or a GPU.
std::string reach_list(const std::vector<device::Device>& devices);

}  // namespace offload::worker
