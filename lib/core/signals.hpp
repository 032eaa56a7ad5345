#pragma once

#include "core/fd.hpp"

namespace offload::core {

/// SIGINT and SIGTERM as a readable descriptor (signalfd(2)). Create it first in main, before any
/// thread, so that every thread inherits the blocked mask. It also ignores SIGPIPE. Once the first
/// signal is taken, both have their default action again: a second one ends the process at once.
class ShutdownSignals {
 public:
  /// Throws Error.
  ShutdownSignals();

  /// The descriptor, readable once a signal has arrived; for an epoll set.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  /// The signal that arrived, 0 if none has. Does not block. One thread.
  int take();

 private:
  Fd fd_;
};

}  // namespace offload::core
