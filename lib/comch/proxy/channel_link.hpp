#pragma once

#include <functional>
#include <string>

#include "channel/channel_memory.hpp"

namespace offload::comch {

/// Connects a channel of this machine, which a back end serves, to a server on another machine. One
/// thread makes, starts and destroys it; in between it runs its own thread.
class ChannelLink {
 public:
  ChannelLink() = default;
  ChannelLink(const ChannelLink&) = delete;
  ChannelLink& operator=(const ChannelLink&) = delete;
  /// Stops the thread.
  virtual ~ChannelLink() = default;

  /// Returns the channel for the back end.
  [[nodiscard]] virtual const channel::SharedChannel& channel() const noexcept = 0;
  /// Starts the thread. `wakeup`: the back end's. Calls `on_failure` on the thread when the
  /// connection has ended. Throws Error.
  virtual void start(channel::Wakeup wakeup, std::function<void()> on_failure) = 0;
  /// Returns why the connection has ended; null while it has not. Any thread.
  [[nodiscard]] virtual const std::string* failure() const noexcept = 0;
};

}  // namespace offload::comch
