#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comch/address.hpp"
#include "core/fd.hpp"
#include "protocol/frame.hpp"

/// The control channel's wire: a Unix-domain socket that keeps message boundaries and carries
/// descriptors. Setup and a few messages a second; it may allocate.
namespace offload::comch {

/// One control message as it came.
struct ControlMessage {
  protocol::MessageId id;
  std::vector<std::byte> payload;
  std::vector<core::Fd> fds;
};

/// Who is at the other end, by the kernel's word.
struct PeerCredentials {
  int pid;
  unsigned uid;
};

/// A connected control socket. Move-only, non-blocking. One thread.
class ControlSocket {
 public:
  explicit ControlSocket(core::Fd fd) noexcept : fd_(std::move(fd)) {}

  /// Connects to a server. Throws Error: not_connected or not_found while there is none, again
  /// while it does not accept, not_permitted if it belongs to another user than this one and root.
  static ControlSocket connect(const Address& address);

  /// Sends one message with up to 3 descriptors. Throws Error: connection_reset, or timed_out when
  /// the peer lets its messages lie unread.
  void send(protocol::MessageId id, std::span<const std::byte> payload,
            std::span<const int> fds = {});
  void refuse(protocol::Refusal code, const std::string& text) noexcept;

  /// The next message, nothing if none has come. Throws Error: connection_reset when the peer is
  /// gone, bad_message for anything that is not exactly one control frame.
  std::optional<ControlMessage> receive();

  [[nodiscard]] PeerCredentials peer() const;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  core::Fd fd_;
};

/// Keeps other servers from a path while it lives: a lock on a file beside it (PATH.lock), which
/// stays when its holder is killed and does no harm then.
class PathLock {
 public:
  /// Throws Error: in_use where another server has it.
  explicit PathLock(const Address& address);
  PathLock(const PathLock&) = delete;
  PathLock& operator=(const PathLock&) = delete;
  ~PathLock();

 private:
  std::string path_;
  core::Fd fd_;
};

/// The listening end. Its socket file has mode 0600 and goes with the object.
class ControlListener {
 public:
  /// Takes over the path from a server that is no more; throws Error (in_use) where one lives, or
  /// where the path is not a socket.
  explicit ControlListener(const Address& address);
  ControlListener(const ControlListener&) = delete;
  ControlListener& operator=(const ControlListener&) = delete;
  ~ControlListener();

  /// The next connection of this user or root, nothing if none can be had; others are closed.
  std::optional<ControlSocket> accept();
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  Address address_;
  PathLock lock_;
  core::Fd fd_;
};

}  // namespace offload::comch
