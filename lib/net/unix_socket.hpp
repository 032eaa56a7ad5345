#pragma once

#include <string>

#include "core/fd.hpp"

namespace offload::net {

/// A listening stream socket at `path`, non-blocking, which only this user and root may connect to
/// (mode 0600 from the start). Takes the place of one that nobody listens at any more. The file is
/// the caller's to remove (OwnFile). Throws Error: in_use where somebody listens, or something else
/// is there.
core::Fd listen_unix(const std::string& path, int backlog);

/// Whether `path` is one that sockaddr_un takes: not empty, at most 107 bytes.
[[nodiscard]] bool is_unix_path(const std::string& path) noexcept;

}  // namespace offload::net
