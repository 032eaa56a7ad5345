#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "channel/channel_memory.hpp"
#include "channel/requester.hpp"
#include "comch/transport/data_connection.hpp"
#include "progress/engine.hpp"

namespace offload::comch {

/// A server on another machine, as the worker's back end sees it: a channel of this machine whose
/// requester is a thread between the connection and the slots. It posts each request that comes,
/// sends each response, and releases what is sent.
///
/// One thread makes, starts and ends it; it runs one of its own in between.
class ServerProxy {
 public:
  /// `shape`: as the server described the channel. Throws Error.
  ServerProxy(const protocol::ChannelDescriptor& shape, std::unique_ptr<DataEndpoint> endpoint);
  ServerProxy(const ServerProxy&) = delete;
  ServerProxy& operator=(const ServerProxy&) = delete;
  /// Ends the thread.
  ~ServerProxy();

  /// The channel as a back end takes it.
  [[nodiscard]] const channel::SharedChannel& channel() const noexcept { return channel_; }

  /// `wakeup`: the back end's. `on_failure` is called on the thread once the connection has ended.
  /// Throws Error.
  void start(channel::Wakeup wakeup, std::function<void()> on_failure);
  /// Why the connection has ended; null while it has not. Any thread.
  [[nodiscard]] const std::string* failure() const noexcept;

 private:
  class Relay;

  void run();

  channel::ChannelMemory memory_;
  channel::SharedChannel channel_;
  progress::Engine engine_;
  std::unique_ptr<Relay> relay_;
  std::function<void()> on_failure_;
  std::atomic<bool> stop_{false};  ///< relaxed; notify() orders it
  std::thread thread_;
};

}  // namespace offload::comch
