#pragma once

#include <memory>
#include <optional>

#include "comch/transport/control_connection.hpp"
#include "net/own_file.hpp"

namespace offload::comch {

// The transport "unix": a Unix-domain socket of type SOCK_SEQPACKET, which preserves message
// boundaries, passes descriptors and reports the peer's process and user: unix(7). Both ends belong
// to one user, or to root.

/// Connects to a server. Throws Error: not_connected, not_found or again while there is none,
/// not_permitted if it belongs to another user.
std::unique_ptr<ControlConnection> connect_local(const Address& address);
/// Listens, and takes over the path of a server that was killed; the socket file has mode 0600 and
/// is removed with the object. Throws Error: in_use if another server runs, or the path is not a
/// socket.
std::unique_ptr<Listener> listen_local(const Address& address);

/// Keeps other servers from using the path of a socket: a lock, flock(2), on a file beside it
/// (PATH.lock). If its holder is killed, the file stays, but is not locked.
class PathLock {
 public:
  /// Throws Error: in_use if another server holds the lock.
  explicit PathLock(const Address& address);
  PathLock& operator=(PathLock&&) = delete;

 private:
  core::Fd fd_;
  std::optional<net::OwnFile> file_;  ///< removed while it is still locked
};

}  // namespace offload::comch
