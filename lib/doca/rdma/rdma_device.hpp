#pragma once

#include "rdma/verbs/device_context.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::doca {

/// An open RDMA device with the protection domain that all mmaps and contexts on it share.
struct RdmaDevice {
  /// Throws Error.
  explicit RdmaDevice(const device::Device& of) : device(of) {}

  rdma::DeviceContext device;
  rdma::ProtectionDomain domain{device};
  rdma::RdmaRegistrar registrar{domain};
};

}  // namespace offload::doca
