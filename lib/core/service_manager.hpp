#pragma once

#include <string>
#include <string_view>

#include "core/clock.hpp"

namespace offload::core {

/// The end of a service towards the manager that has started it, in the protocol of systemd's
/// sd_notify(3): one datagram a message, to the socket that NOTIFY_SOCKET names. Does nothing where
/// no manager asks for it. A message that cannot be sent is dropped: the manager's own time limits
/// then decide. One thread.
class ServiceManager {
 public:
  /// Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
  ServiceManager();

  /// The service does its work from now on. `status`: one line for "systemctl status".
  void ready(std::string_view status) noexcept { send("READY=1\nSTATUS=", status); }
  void status(std::string_view status) noexcept { send("STATUS=", status); }
  /// It ends, in its own time.
  void stopping(std::string_view status) noexcept { send("STOPPING=1\nSTATUS=", status); }

  /// Returns when tick() is due: TimePoint::max() without a watchdog.
  [[nodiscard]] TimePoint next_tick() const noexcept { return next_tick_; }
  /// Says that the calling thread turns, if that is due: three times within the watchdog's limit.
  void tick(TimePoint now) noexcept;

 private:
  void send(std::string_view state, std::string_view text) noexcept;

  std::string socket_;   ///< empty: no service manager
  Duration interval_{};  ///< of the watchdog
  TimePoint next_tick_ = TimePoint::max();
};

}  // namespace offload::core
