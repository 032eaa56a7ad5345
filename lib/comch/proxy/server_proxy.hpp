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
class ServerProxy final : DataHandler {
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
  [[nodiscard]] const std::string* failure() const noexcept { return connection_->failure(); }

  /// For the requester, on the thread: the back end has answered.
  void on_response(channel::PostRecvTask& task);

 private:
  bool post_sends() override { return false; }  // on_response() does
  void on_sent(std::size_t count) override;
  std::byte* receive_buffer(std::uint64_t sequence) override {
    return reinterpret_cast<std::byte*>(requester_.view().request(sequence).plain());
  }
  bool on_received(const protocol::DataHeader&, std::span<const std::byte> payload) override {
    return requester_.post(payload, nullptr).ok();
  }
  void on_receives_done() override { (void)requester_.flush(); }

  void run();

  channel::ChannelMemory memory_;
  channel::SharedChannel channel_;
  progress::Engine engine_;
  channel::Requester requester_;
  std::unique_ptr<DataConnection> connection_;
  std::vector<channel::PostRecvTask*> answering_;  ///< whose responses are being sent, in order
  std::uint64_t answered_ = 0;
  std::uint64_t answers_sent_ = 0;
  std::function<void()> on_failure_;
  std::atomic<bool> stop_{false};  ///< relaxed; notify() orders it
  std::thread thread_;
};

}  // namespace offload::comch
