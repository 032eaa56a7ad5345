#pragma once

#include <memory>

#include "comch/transport/control_connection.hpp"
#include "comch/transport/tcp/stream.hpp"

namespace offload::comch {

// The transport "tcp": a stream socket (tcp(7)), frame after frame, inside TLS 1.3 with the key of
// both ends, on loopback too; without either where the address is insecure. A data endpoint is the
// stream of its control connection.

/// Throws Error: not_connected, not_found, timed_out, not_permitted without a key,
/// connection_aborted for a server that does not prove one.
std::unique_ptr<ControlConnection> connect_tcp(const Address& address);
/// Throws Error: in_use, not_permitted without a key.
std::unique_ptr<Listener> listen_tcp(const Address& address);

/// Connects a non-blocking stream to a server; the peer has proven its key. Throws Error.
using ConnectStream = Stream (*)(const Address& address);

/// A control connection on a connected, non-blocking stream of any family; `connect` makes the
/// streams of its connect_another(). `keys`: of a server whose peer is to prove one by TLS.
std::unique_ptr<NetworkControlConnection> make_stream_connection(
    Stream stream, ConnectStream connect, std::shared_ptr<const Keyring> keys = nullptr);

}  // namespace offload::comch
