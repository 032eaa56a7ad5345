#pragma once

#include "core/fd.hpp"

namespace offload::core {

/// Turns SIGINT and SIGTERM into a readable descriptor. Create it first thing in main, before any
/// thread, so that every thread inherits the blocked mask. After the first signal was taken, both
/// regain their default action: a second one ends the process at once, whatever it is doing.
class ShutdownSignals {
 public:
  ShutdownSignals();

  /// Readable once a signal has arrived; for an epoll set.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  /// The signal that arrived, 0 if none has. Not blocking. One thread.
  int take();

 private:
  Fd fd_;
};

}  // namespace offload::core
