#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comch/address.hpp"
#include "core/clock.hpp"
#include "core/fd.hpp"
#include "protocol/frame.hpp"

/// The control channel's wire: on one machine a Unix-domain socket, which keeps message boundaries,
/// carries descriptors and tells who the peer is; else a TCP connection, on which both sides prove
/// that they have the key before anything else is said. Setup and a few messages a second; it may
/// allocate.
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
  enum class Kind : std::uint8_t { local, tcp };
  explicit ControlSocket(core::Fd fd, Kind kind = Kind::local) noexcept
      : fd_(std::move(fd)), kind_(kind) {}

  /// Connects to a server; over TCP with the proofs, which takes kHandshakeTime at most. Throws
  /// Error: not_connected, not_found, timed_out or connection_reset while there is none, again
  /// while it does not accept, not_permitted if it belongs to another user than this one and root,
  /// or has another key, or no key is given and it is not on this machine.
  static ControlSocket connect(const Address& address);

  /// How long a step of connecting may take.
  static constexpr core::Duration kHandshakeTime = std::chrono::seconds(3);

  /// Sends one message with up to 3 descriptors, local ones alone. Throws Error: connection_reset,
  /// or timed_out when the peer lets its messages lie unread.
  void send(protocol::MessageId id, std::span<const std::byte> payload,
            std::span<const int> fds = {});
  void refuse(protocol::Refusal code, const std::string& text) noexcept;

  /// The next message, nothing if none has come. Throws Error: connection_reset when the peer is
  /// gone, bad_message for anything that is not exactly one control frame.
  std::optional<ControlMessage> receive();
  /// The same, waiting for it. Throws Error (timed_out) after kHandshakeTime.
  ControlMessage await();

  [[nodiscard]] bool local() const noexcept { return kind_ == Kind::local; }
  /// Of a local one.
  [[nodiscard]] PeerCredentials peer() const;
  /// "process 17", "10.0.0.1:4711"
  [[nodiscard]] std::string peer_name() const;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Gives the connection up for other use. Throws Error (bad_message) if the peer has sent more
  /// than was received.
  core::Fd release();

 private:
  std::optional<ControlMessage> receive_packet();
  std::optional<ControlMessage> receive_from_stream();

  core::Fd fd_;
  Kind kind_;
  std::vector<std::byte> unread_;  ///< of a stream: what came and is no whole message yet
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

/// The listening end. A socket file has mode 0600 and goes with the object.
class ControlListener {
 public:
  /// Takes over the path from a server that is no more; throws Error: in_use where one lives, or
  /// where the path is not a socket; not_permitted for a TCP address that others can reach, if
  /// there is no key.
  explicit ControlListener(const Address& address);
  ControlListener(const ControlListener&) = delete;
  ControlListener& operator=(const ControlListener&) = delete;
  ~ControlListener();

  /// The next connection, nothing if none can be had. Local ones that are not of this user or root
  /// are closed.
  std::optional<ControlSocket> accept();
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// With the port that it has, if any was asked for.
  [[nodiscard]] const Address& address() const noexcept { return address_; }

 private:
  [[nodiscard]] core::Fd listen_locally();

  Address address_;
  std::optional<PathLock> lock_;  ///< of a local one
  core::Fd fd_;
};

}  // namespace offload::comch
