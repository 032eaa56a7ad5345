#pragma once

#include "core/fd.hpp"
#include "net/socket.hpp"

/// The steps that the makers of sockets share. They throw Error.
namespace offload::net {

/// Sets an option of a socket. `name` is for the error's text.
void set_option(int fd, int level, int option, int value, const char* name);

/// A socket with the options of every TCP connection of the suite (listen_tcp()).
core::Fd open_tcp(int family);

/// Binds a socket for listening.
void bind_to(const core::Fd& fd, const SocketAddress& address);

}  // namespace offload::net
