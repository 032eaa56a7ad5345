#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/fd.hpp"

/// Messages that carry file descriptors (SCM_RIGHTS), over Unix sockets that keep message
/// boundaries (SOCK_SEQPACKET). Setup, not data path. Source: unix(7), cmsg(3).
namespace offload::net {

/// The most descriptors in one message; the kernel accepts 253 (SCM_MAX_FD, unix(7)).
inline constexpr std::size_t kMaxPassedFds = 64;

/// Sends one message; the caller keeps its descriptors. Throws Error: again if the peer's queue is
/// full, connection_reset if the peer has closed, invalid_value for too many descriptors.
void send_with_fds(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

/// A received message.
struct MessageWithFds {
  std::size_t size;           ///< bytes in the caller's buffer; 0: the peer has closed
  std::vector<core::Fd> fds;  ///< closed on exec
  bool truncated;             ///< the buffer or kMaxPassedFds was too small
};

/// Receives the next message, its bytes into `room`; nothing if a non-blocking socket has none.
/// Throws Error, also if the limit of open files keeps its descriptors out.
std::optional<MessageWithFds> receive_with_fds(int socket, std::span<std::byte> room);

}  // namespace offload::net
