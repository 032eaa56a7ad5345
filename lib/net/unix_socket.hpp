#pragma once

#include <string>

#include "core/fd.hpp"

namespace offload::net {

/// Returns a listening, non-blocking stream socket at `path`, to which only this user and root may
/// connect (mode 0600 from the start). Replaces a socket without a listener. The caller must remove
/// the file (OwnFile). Throws Error: in_use if another process listens, or the path is not a
/// socket.
core::Fd listen_unix(const std::string& path, int backlog);

/// Returns whether `path` fits in a sockaddr_un: not empty, at most 107 bytes.
[[nodiscard]] bool is_unix_path(const std::string& path) noexcept;

}  // namespace offload::net
