#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"

/// The RDMA devices of this machine, as libibverbs finds them.
namespace offload::device {

struct RdmaDevices {
  std::vector<Device> devices;
  std::string why_none;  ///< empty if there are some
};
RdmaDevices list_rdma_devices();

/// Of any RDMA device.
Support rdma_supports(Capability capability);

}  // namespace offload::device
