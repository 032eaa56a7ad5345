#pragma once

#include <cstdint>

#include "core/fd.hpp"

namespace offload::core {

/// The effect of SIGHUP: the kernel's default, which ends the program, or that of services, which
/// reread their settings.
enum class Hangup : std::uint8_t { ends, rereads };

/// SIGINT, SIGTERM and, for Hangup::rereads, SIGHUP as a readable descriptor (signalfd(2)). Create
/// it first in main, before any thread, so that every thread inherits the blocked mask. It also
/// ignores SIGPIPE. Once the first SIGINT or SIGTERM is taken, both have their default action
/// again: a second one ends the process at once. A SIGHUP that is taken never does, however many
/// come.
class Signals {
 public:
  /// Throws Error.
  explicit Signals(Hangup hangup = Hangup::ends);

  /// The descriptor, readable once a signal has arrived; for an epoll set.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  /// The signal that arrived, 0 if none has. Does not block. One thread.
  int take();

 private:
  Fd fd_;
};

/// Thrown by a wait that SIGINT or SIGTERM ended.
struct Interrupted {};

}  // namespace offload::core
