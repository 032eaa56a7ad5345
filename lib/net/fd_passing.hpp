#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/fd.hpp"

/// Messages with descriptors beside their bytes, over Unix sockets that keep message boundaries
/// (SOCK_SEQPACKET). Setup, not data path. Source: unix(7), cmsg(3).
namespace offload::net {

/// The most descriptors of one message; the kernel takes up to 253.
inline constexpr std::size_t kMaxPassedFds = 64;

/// Sends one message; the descriptors stay the caller's. Throws Error: again if the peer lets its
/// messages lie unread, connection_reset if it is gone, invalid_value for too many descriptors.
void send_with_fds(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

struct MessageWithFds {
  std::size_t size;           ///< bytes written to the caller's room; 0: the peer has closed
  std::vector<core::Fd> fds;  ///< closed on exec
  bool truncated;             ///< there were more bytes or descriptors than room
};

/// The next message, its bytes in `room`; nothing if none has come. Throws Error.
std::optional<MessageWithFds> receive_with_fds(int socket, std::span<std::byte> room);

}  // namespace offload::net
