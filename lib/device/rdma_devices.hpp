#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"

/// What libibverbs finds.
namespace offload::device {

struct RdmaDevices {
  std::vector<Device> devices;
  std::string why_none;  ///< empty if there are some
};
RdmaDevices list_rdma_devices();

Support rdma_supports(Capability capability);

}  // namespace offload::device
