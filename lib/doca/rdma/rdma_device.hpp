#pragma once

#include "rdma/verbs/device_context.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::doca {

/// An open RDMA device with the protection domain that all mmaps and contexts on it share.
struct RdmaDevice {
  /// Throws Error.
  explicit RdmaDevice(const device::Device& of) : device(of) {}
  /// Borrows a protection domain and its device. Throws Error.
  explicit RdmaDevice(ibv_pd* of)
      : device(rdma::DeviceContext::import(of->context)),
        domain(rdma::ProtectionDomain::import(of)) {}

  rdma::DeviceContext device;
  rdma::ProtectionDomain domain{device};
  rdma::RdmaRegistrar registrar{domain};
};

}  // namespace offload::doca
