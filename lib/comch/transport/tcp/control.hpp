#pragma once

#include <memory>

#include "comch/transport/control_connection.hpp"

namespace offload::comch {

// The transport "tcp": a stream socket (tcp(7)), frame after frame. It takes a key where others
// than this machine can reach it. A data endpoint is the socket of its control connection.

/// Throws Error: not_connected, not_found, timed_out, not_permitted without a key off loopback.
std::unique_ptr<ControlConnection> connect_tcp(const Address& address);
/// Throws Error: in_use, not_permitted without a key off loopback.
std::unique_ptr<Listener> listen_tcp(const Address& address);

/// Connects a non-blocking stream socket to a server. Throws Error.
using ConnectSocket = core::Fd (*)(const Address& address);

/// A control connection on a connected, non-blocking stream socket of any family; `connect` makes
/// the sockets of its connect_another().
std::unique_ptr<NetworkControlConnection> make_stream_connection(core::Fd socket,
                                                                 ConnectSocket connect);

}  // namespace offload::comch
