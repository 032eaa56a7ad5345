#pragma once

#include <csignal>

namespace offload::core {

/// Blocks every signal in the threads that are made while it lives.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &former_);
  }
  SignalsBlocked& operator=(SignalsBlocked&&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &former_, nullptr); }

 private:
  sigset_t former_{};
};

}  // namespace offload::core
