#pragma once

#include <functional>
#include <memory>

#include "comch/transport/control_connection.hpp"
#include "comch/transport/tcp/stream.hpp"
#include "net/socket.hpp"

namespace offload::comch {

// The transport "tcp": a stream socket (tcp(7)) that carries frame after frame, in TLS 1.3 with the
// key of both ends, on loopback too; without either if the address is insecure. A data endpoint
// uses the stream of its control connection.

/// Connects to a server. Throws Error: not_connected, not_found, timed_out, not_permitted without a
/// key, connection_aborted for a server that does not prove one.
std::unique_ptr<ControlConnection> connect_tcp(const Address& address);
/// Listens. Throws Error: in_use, not_permitted without a key.
std::unique_ptr<Listener> listen_tcp(const Address& address);

/// Throws Error if a connection with this local address cannot be used.
using CheckOwnAddress = std::function<void(const net::SocketAddress& own)>;

/// Connects to the first address at which a server answers and proves the key, if one is required.
/// Throws Error as connect_tcp() does.
TcpStream connect_tcp_stream(const Address& address);
/// Connects to the first address that also passes `check`. Throws Error as connect_tcp_stream() and
/// `check` do.
TcpStream connect_tcp_stream_where(const Address& address, const CheckOwnAddress& check);

}  // namespace offload::comch
