#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "channel/channel_memory.hpp"
#include "progress/engine.hpp"
#include "protocol/control.hpp"

namespace offload::comch {

/// A channel of this machine, which a back end serves, that stands for a server's on another one,
/// and what connects the two. One thread makes, starts and ends it; it runs one of its own in
/// between.
class ChannelLink {
 public:
  ChannelLink(const ChannelLink&) = delete;
  ChannelLink& operator=(const ChannelLink&) = delete;
  virtual ~ChannelLink() = default;

  /// The channel as a back end takes it.
  [[nodiscard]] const channel::SharedChannel& channel() const noexcept { return channel_; }
  /// `wakeup`: the back end's. `on_failure` is called on the thread once the connection has ended.
  /// Throws Error.
  void start(channel::Wakeup wakeup, std::function<void()> on_failure);
  /// Why the connection has ended; null while it has not. Any thread.
  [[nodiscard]] virtual const std::string* failure() const noexcept = 0;

 protected:
  /// `shape`: as the server described the channel. Throws Error (bad_message) for an impossible
  /// one.
  explicit ChannelLink(const protocol::ChannelDescriptor& shape);
  /// Makes channel(), with memory_ as a back end has it, which posts its responses with `writer`,
  /// unless that is null. Throws Error.
  void import_channel(const channel::ResponseWriter* writer = nullptr);
  /// For the destructor of a derived class.
  void end_thread() noexcept;

  channel::ChannelMemory memory_;
  progress::Engine engine_;  ///< the thread's

 private:
  /// What the thread is called, with the channel's index.
  [[nodiscard]] virtual const char* thread_name() const noexcept = 0;
  /// Before the first turn. Throws Error.
  virtual void open(channel::Wakeup wakeup) = 0;
  /// After the last, on the thread.
  virtual void close() noexcept {}
  void run();

  channel::SharedChannel channel_;
  std::function<void()> on_failure_;
  std::atomic<bool> stop_{false};  ///< relaxed; notify() orders it
  std::thread thread_;
};

}  // namespace offload::comch
