#pragma once

#include <string_view>

#include "rdma/connection/pairing.hpp"
#include "rdma/verbs/device_context.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::comch {

/// An open RDMA device for data connections to peers, through any of its ports and addresses.
struct Adapter {
  /// Throws Error.
  explicit Adapter(std::string_view name) : device(name), domain(device), registrar(domain) {}

  rdma::DeviceContext device;
  rdma::ProtectionDomain domain;
  rdma::Registrar registrar;
};

}  // namespace offload::comch
