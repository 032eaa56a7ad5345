#pragma once

#include <memory>

#include "comch/transport/control_connection.hpp"

namespace offload::comch {

// The transport "tcp": a stream socket, frame after frame. It takes a key where others than this
// machine can reach it. A data endpoint is the socket of its control connection.

/// Throws Error: not_connected, not_found, timed_out, not_permitted without a key off loopback.
std::unique_ptr<ControlConnection> connect_tcp(const Address& address);
/// Throws Error: in_use, not_permitted without a key off loopback.
std::unique_ptr<Listener> listen_tcp(const Address& address);

/// A control connection on a connected, non-blocking stream socket.
std::unique_ptr<NetworkControlConnection> make_tcp_connection(core::Fd socket);

}  // namespace offload::comch
