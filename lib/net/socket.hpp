#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/fd.hpp"

namespace offload::net {

/// An IPv4 or IPv6 address with a port, as sockaddr.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  /// A copy of an IPv4 or IPv6 address; of no family for any other.
  static SocketAddress from(const sockaddr* address) noexcept;

  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
  [[nodiscard]] int family() const noexcept { return storage.ss_family; }
  [[nodiscard]] std::uint16_t port() const noexcept;
  /// Returns whether only this machine can connect to it.
  [[nodiscard]] bool is_loopback() const noexcept;
  /// Returns whether it means all addresses of a machine: "0.0.0.0", "::".
  [[nodiscard]] bool is_wildcard() const noexcept;
  /// "127.0.0.1", "::1"
  [[nodiscard]] std::string host() const;
  /// "127.0.0.1:9", "[::1]:9"
  [[nodiscard]] std::string to_string() const;
};

/// The addresses of `host` (a name, an IPv4 or an IPv6 address, brackets allowed) for TCP, best
/// first. Throws Error (not_found).
std::vector<SocketAddress> resolve(const std::string& host, std::uint16_t port);

/// A bound socket that does not listen yet, so connections are refused. Otherwise as listen_tcp.
core::Fd bind_tcp(const SocketAddress& address);

/// Makes a bound socket listen. Throws Error.
void start_listening(int fd, int backlog);

/// A listening socket, non-blocking, close-on-exec. Accepted sockets inherit TCP_NODELAY and
/// keep-alive, which detects a dead peer within some minutes. Throws Error.
core::Fd listen_tcp(const SocketAddress& address, int backlog);

/// Returns listening sockets at one address, each with a separate queue: connections of one source
/// (net::Source) come to one of them, so a source that connects too fast fills only that queue.
/// Otherwise as listen_tcp().
std::vector<core::Fd> listen_tcp_by_source(const SocketAddress& address, int backlog);

/// The address that a socket is bound to. Throws Error.
SocketAddress local_address(int fd);

/// The address of the peer of a connected socket. Throws Error.
SocketAddress peer_address(int fd);

/// Starts to connect: a non-blocking socket with TCP_NODELAY and keep-alive, writable once
/// connect_result() is known. Throws Error if it fails at once.
core::Fd start_connect(const SocketAddress& address);

/// Ends a connection (ETIMEDOUT) once what was sent on it has not been acknowledged, or has found
/// the peer's window closed, for `timeout`: TCP_USER_TIMEOUT, tcp(7). 0: the kernel's own limits,
/// some 15 minutes and none. On a listening socket: for the connections that it accepts. Throws
/// Error.
void set_dead_peer_timeout(int fd, core::Duration timeout);

/// The result of start_connect(): 0 or an errno.
int connect_result(int fd) noexcept;

}  // namespace offload::net
