#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "channel/channel_memory.hpp"
#include "progress/engine.hpp"
#include "protocol/control.hpp"

namespace offload::comch {

/// A channel of this machine, which a back end serves and which represents a server's channel on
/// another one, and the connection of the two. One thread makes, starts and destroys it; in between
/// it runs its own thread.
class ChannelLink {
 public:
  ChannelLink& operator=(ChannelLink&&) = delete;
  virtual ~ChannelLink() = default;

  /// Returns the channel for the back end.
  [[nodiscard]] const channel::SharedChannel& channel() const noexcept { return channel_; }
  /// Starts the thread. `wakeup`: the back end's. Calls `on_failure` on the thread when the
  /// connection has ended. Throws Error.
  void start(channel::Wakeup wakeup, std::function<void()> on_failure);
  /// Returns why the connection has ended; null while it has not. Any thread.
  [[nodiscard]] virtual const std::string* failure() const noexcept = 0;

 protected:
  /// `shape`: the server's description of the channel. Throws Error (bad_message) if it is invalid.
  explicit ChannelLink(const protocol::ChannelDescriptor& shape);
  /// Makes channel() by importing memory_ for a back end, which posts its responses with `writer`
  /// unless that is null. Throws Error.
  void import_channel(const channel::ResponseWriter* writer = nullptr);
  /// Ends the thread; for the destructor of a derived class.
  void end_thread() noexcept;

  channel::ChannelMemory memory_;
  progress::Engine engine_;  ///< the thread's

 private:
  /// Returns the name of the thread, to which the channel's index is added.
  [[nodiscard]] virtual const char* thread_name() const noexcept = 0;
  /// Called before the first turn. Throws Error.
  virtual void open(channel::Wakeup wakeup) = 0;
  /// Called after the last turn, on the thread.
  virtual void close() noexcept {}
  void run();

  channel::SharedChannel channel_;
  std::function<void()> on_failure_;
  std::atomic<bool> stop_{false};  ///< relaxed; notify() orders it
  std::thread thread_;
};

}  // namespace offload::comch
