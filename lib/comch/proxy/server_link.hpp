#pragma once

#include <functional>
#include <string>

#include "channel/channel_memory.hpp"

namespace offload::comch {

/// What connects a channel of this machine, which a back end serves, to a server on another one.
/// One thread makes, starts and ends it; it runs one of its own in between.
class ServerLink {
 public:
  ServerLink() = default;
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;
  /// Ends the thread.
  virtual ~ServerLink() = default;

  /// The channel as a back end takes it.
  [[nodiscard]] virtual const channel::SharedChannel& channel() const noexcept = 0;
  /// `wakeup`: the back end's. `on_failure` is called on the thread once the connection has ended.
  /// Throws Error.
  virtual void start(channel::Wakeup wakeup, std::function<void()> on_failure) = 0;
  /// Why the connection has ended; null while it has not. Any thread.
  [[nodiscard]] virtual const std::string* failure() const noexcept = 0;
};

}  // namespace offload::comch
