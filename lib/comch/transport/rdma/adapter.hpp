#pragma once

#include <string_view>

#include "rdma/connection/pairing.hpp"
#include "rdma/verbs/device_context.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::comch {

/// An RDMA device, open for the data connections of its peers, by whichever of its ports and
/// addresses each of them is reached.
struct Adapter {
  /// Throws Error.
  explicit Adapter(std::string_view name) : device(name), domain(device), registrar(domain) {}

  rdma::DeviceContext device;
  rdma::ProtectionDomain domain;
  rdma::Registrar registrar;
};

}  // namespace offload::comch
