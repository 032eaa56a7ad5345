#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace offload::clients {

/// While it lives, a write of this thread to a closed connection raises no SIGPIPE. OpenSSL writes
/// by write(2), which has no flag for that, and how signals are handled is the program's to decide.
class QuietPipe {
 public:
  /// `needed`: false if every write has MSG_NOSIGNAL; then it does nothing.
  explicit QuietPipe(bool needed) noexcept {
    if (!needed) return;
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t before;
    blocks_ =
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before) == 0 && ::sigismember(&before, SIGPIPE) == 0;
  }
  QuietPipe& operator=(QuietPipe&&) = delete;
  ~QuietPipe() {
    // A thread that blocks it itself gets one more that is pending, as by its own writes.
    if (!blocks_) return;
    const timespec at_once{};
    while (::sigtimedwait(&pipe_, nullptr, &at_once) > 0) {
    }
    ::pthread_sigmask(SIG_UNBLOCK, &pipe_, nullptr);
  }

 private:
  sigset_t pipe_{};
  bool blocks_ = false;
};

}  // namespace offload::clients
