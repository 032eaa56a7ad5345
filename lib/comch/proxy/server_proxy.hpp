#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "channel/channel_memory.hpp"
#include "channel/consumer.hpp"
#include "channel/producer.hpp"
#include "comch/transport/data_connection.hpp"
#include "progress/task_pool.hpp"

namespace offload::comch {

/// The worker's half of a channel to a server on another machine: a channel of this machine's own,
/// whose server it stands in for. A thread between the connection and the slots that the back end
/// polls: a request that came is posted, a response that was given is sent, and what is sent is
/// posted again.
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
  [[nodiscard]] const channel::ChannelImport& channel() const noexcept { return import_; }

  /// `peer`: how the back end tells that it answered. `on_failure` is called on the thread once the
  /// connection has ended. Throws Error.
  void start(channel::Peer peer, std::function<void()> on_failure);
  /// Why the connection has ended; null while it has not. Any thread.
  [[nodiscard]] const std::string* failure() const noexcept;

 private:
  /// The thread's own: it never changes hands after start().
  class Proxy;

  void run();

  channel::Channel channel_;
  channel::ChannelImport import_;
  progress::Engine engine_;
  std::unique_ptr<Proxy> proxy_;
  std::function<void()> on_failure_;
  std::atomic<bool> stop_{false};  ///< relaxed; notify() orders it
  std::thread thread_;
};

}  // namespace offload::comch
