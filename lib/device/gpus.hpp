#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"

/// The GPUs of this machine: one implementation with CUDA (cuda_gpus.cpp), one without
/// (no_gpus.cpp).
namespace offload::device {

struct Gpus {
  std::vector<Device> devices;
  std::string why_none;  ///< empty if there are some
};
Gpus list_gpus();

/// `gpu`: one of list_gpus().
Support gpu_supports(const Device& gpu, Capability capability);

}  // namespace offload::device
