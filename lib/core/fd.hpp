#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace offload::core {

/// The owner of a file descriptor. Move-only; closes it on destruction.
class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept {
    const int old = std::exchange(fd_, fd);
    if (old >= 0 && old != fd) ::close(old);
  }

 private:
  int fd_ = -1;
};

/// Opens a regular file for reading. Does not block: another kind of file at that path, such as a
/// FIFO without a writer, is an error (invalid_value). `action` begins the message, as in "cannot
/// read the key file k". Throws Error. Any thread.
Fd open_regular_file(const std::string& path, const std::string& action);

/// Raises this process's soft limit of open files (RLIMIT_NOFILE) to the hard limit. Returns it,
/// 2^30 at most. Throws Error.
inline int raise_descriptor_limit() {
  constexpr rlim_t kMost = 1U << 30;  // RLIM_INFINITY does not fit in an int
  rlimit limit{};
  check_errno(::getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  check_errno(::setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
  return static_cast<int>(std::min(limit.rlim_cur, kMost));
}

}  // namespace offload::core
