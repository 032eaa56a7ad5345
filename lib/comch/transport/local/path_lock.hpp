#pragma once

#include <string>

#include "comch/address.hpp"
#include "core/fd.hpp"

namespace offload::comch {

/// Keeps other servers from a socket's path while it lives: a lock, flock(2), on a file beside it
/// (PATH.lock). If its holder is killed, the file stays and locks nothing.
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

}  // namespace offload::comch
