#pragma once

#include <functional>
#include <memory>

#include "comch/transport/control_connection.hpp"
#include "comch/transport/tcp/stream.hpp"
#include "net/socket.hpp"

namespace offload::comch {

// The transport "tcp": a stream socket (tcp(7)), frame after frame, inside TLS 1.3 with the key of
// both ends, on loopback too; without either where the address is insecure. A data endpoint is the
// stream of its control connection.

/// Throws Error: not_connected, not_found, timed_out, not_permitted without a key,
/// connection_aborted for a server that does not prove one.
std::unique_ptr<ControlConnection> connect_tcp(const Address& address);
/// Throws Error: in_use, not_permitted without a key.
std::unique_ptr<Listener> listen_tcp(const Address& address);

/// Throws Error where a connection whose own address is this one is of no use.
using CheckOwnAddress = std::function<void(const net::SocketAddress& own)>;

/// Connects to the first address at which a server answers and, where a key is taken, proves it.
/// Throws Error as connect_tcp().
Stream connect_tcp_stream(const Address& address);
/// The same for the first that passes `check` too. Throws Error as that does.
Stream connect_tcp_stream_where(const Address& address, const CheckOwnAddress& check);

}  // namespace offload::comch
