#pragma once

#include <memory>

#include "comch/transport/control_connection.hpp"

/// An example of a transport, "stream:PATH": TCP's messages over a Unix-domain stream socket. A
/// vsock(7) one would differ in the address alone.
namespace offload::comch::example {

std::unique_ptr<ControlConnection> connect_stream(const Address& address);
std::unique_ptr<Listener> listen_stream(const Address& address);

}  // namespace offload::comch::example
