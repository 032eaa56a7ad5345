#pragma once

#include <memory>

#include "comch/transport/control_connection.hpp"

namespace offload::comch {

// The transport "rdma": control connections as those of the transport "tcp", over which two sides
// exchange the descriptions of the queue pairs that carry a channel's data. It requires a key.

/// Connects to a server. Throws Error: not_supported without an RDMA device, and as connect_tcp().
std::unique_ptr<ControlConnection> connect_rdma(const Address& address);
/// Listens. Throws Error: not_supported if no RDMA device has the address, and as listen_tcp().
std::unique_ptr<Listener> listen_rdma(const Address& address);

}  // namespace offload::comch
