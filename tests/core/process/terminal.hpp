#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "core/error.hpp"
#include "core/fd.hpp"

namespace offload::core::test {

/// A terminal for a program under test, and the end at which the test reads and types: pty(7).
struct Terminal {
  Terminal() {
    if (::grantpt(user.get()) != 0 || ::unlockpt(user.get()) != 0) return;
    screen.reset(::open(::ptsname(user.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }

  Fd user{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  Fd screen;  ///< the program's; invalid if this system makes no terminal
};

/// Replaces a descriptor of this process, such as standard error, for its lifetime.
class Replaced {
 public:
  Replaced(int fd, int replacement) : fd_(fd), former_(::fcntl(fd, F_DUPFD_CLOEXEC, 3)) {
    check_errno(former_.get(), "fcntl");
    check_errno(::dup2(replacement, fd), "dup2");
  }
  Replaced& operator=(Replaced&&) = delete;
  ~Replaced() { ::dup2(former_.get(), fd_); }

 private:
  int fd_;
  Fd former_;
};

}  // namespace offload::core::test
