#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <string>

#include "core/clock.hpp"
#include "rdma/verbs/gid.hpp"

namespace offload::rdma {

/// Where to listen or connect: an IPv4 or IPv6 address (no name), and a port.
struct CmAddress {
  std::string address;
  std::uint16_t port = 0;

  /// Throws Error (invalid_value) for a name.
  [[nodiscard]] sockaddr_storage native() const;
};

/// By which of this machine's ports the packets of a connection go.
struct Route {
  std::string device;
  std::uint8_t port = 1;
  GidRule gid;  ///< that one alone, if librdmacm knows it

  /// Of an identifier that has a device.
  static Route of(const rdma_cm_id& id);
};

/// The route to a peer. Waits for librdmacm, at most for `limit`. Throws Error: not_connected,
/// timed_out, not_supported where no RDMA device leads there.
Route route_to(const CmAddress& to, core::Duration limit);

}  // namespace offload::rdma
