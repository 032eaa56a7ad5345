#pragma once

#include <functional>
#include <string>

#include "channel/channel_memory.hpp"

namespace offload::comch {

/// What connects a channel of this machine, which a back end serves, to a server on another one.
/// One thread makes, starts and ends it; it runs one of its own in between.
class ChannelLink {
 public:
  ChannelLink() = default;
  ChannelLink(const ChannelLink&) = delete;
  ChannelLink& operator=(const ChannelLink&) = delete;
  /// Ends the thread.
  virtual ~ChannelLink() = default;

  /// The channel as a back end takes it.
  [[nodiscard]] virtual const channel::SharedChannel& channel() const noexcept = 0;
  /// `wakeup`: the back end's. `on_failure` is called on the thread once the connection has ended.
  /// Throws Error.
  virtual void start(channel::Wakeup wakeup, std::function<void()> on_failure) = 0;
  /// Why the connection has ended; null while it has not. Any thread.
  [[nodiscard]] virtual const std::string* failure() const noexcept = 0;
};

}  // namespace offload::comch
