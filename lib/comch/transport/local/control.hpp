#pragma once

#include <memory>
#include <optional>

#include "comch/transport/control_connection.hpp"
#include "net/own_file.hpp"

namespace offload::comch {

// The transport "unix": a Unix-domain socket of type SOCK_SEQPACKET, which keeps message
// boundaries, passes descriptors and tells the peer's process and user: unix(7). Both ends are of
// one user, or root's.

/// Throws Error: not_connected, not_found or again while there is no server, not_permitted if it
/// belongs to another user.
std::unique_ptr<ControlConnection> connect_local(const Address& address);
/// Takes over the path from a server that was killed; the socket file has mode 0600 and goes with
/// the object. Throws Error: in_use where a server lives, or where the path is not a socket.
std::unique_ptr<Listener> listen_local(const Address& address);

/// Keeps other servers from a socket's path while it lives: a lock, flock(2), on a file beside it
/// (PATH.lock). If its holder is killed, the file stays and locks nothing.
class PathLock {
 public:
  /// Throws Error: in_use where another server has it.
  explicit PathLock(const Address& address);
  PathLock(const PathLock&) = delete;
  PathLock& operator=(const PathLock&) = delete;

 private:
  core::Fd fd_;
  std::optional<net::OwnFile> file_;  ///< goes while it is still locked
};

}  // namespace offload::comch
