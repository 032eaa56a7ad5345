#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "channel/channel_memory.hpp"
#include "channel/slot_queue.hpp"
#include "comch/proxy/channel_link.hpp"
#include "comch/transport/data_connection.hpp"
#include "progress/engine.hpp"

namespace offload::comch {

/// Represents a server on another machine for the worker's back end: a channel of this machine
/// whose requester is a thread between the connection and the slots. It posts each content that
/// arrives, sends each answer, and releases what was sent. It inspects no content: the back end
/// checks requests, and the server checks responses.
///
class ServerProxy final : public ChannelLink, DataHandler {
 public:
  /// `shape`: the server's description of the channel. Throws Error.
  ServerProxy(const protocol::ChannelDescriptor& shape, std::unique_ptr<DataEndpoint> endpoint);
  ~ServerProxy() override;

  [[nodiscard]] const channel::SharedChannel& channel() const noexcept override { return channel_; }
  void start(channel::Wakeup wakeup, std::function<void()> on_failure) override;

  // Instead of start(), for a caller that drives the loop itself, such as a test:

  /// Must be called before the first turn. Throws Error.
  void open(channel::Wakeup wakeup);
  /// Runs one turn, which sleeps until `deadline` at most if there is no work. Returns whether
  /// there was work.
  bool turn(core::TimePoint deadline) { return engine_.run_once(deadline); }

  [[nodiscard]] const std::string* failure() const noexcept override {
    return connection_->failure();
  }

  /// Called by the slots, on the thread, when the back end has answered.
  void on_content(const channel::ContentResponse& response);

 private:
  bool post_sends() override { return false; }  // on_content() does
  void on_sent(std::size_t count) override;
  std::byte* receive_buffer(std::uint64_t sequence) override {
    return reinterpret_cast<std::byte*>(slots_.view().request(sequence).plain());
  }
  bool on_received(const protocol::DataHeader& header, std::span<const std::byte> content) override;
  void on_receives_done() override { slots_.flush(); }

  void run();

  channel::ChannelMemory memory_;
  channel::SharedChannel channel_;
  progress::Engine engine_;
  channel::SlotQueue slots_;
  std::unique_ptr<DataConnection> connection_;
  std::uint64_t answers_sent_ = 0;
  std::function<void()> on_failure_;
  std::atomic<bool> stop_{false};  ///< relaxed; notify() orders it
  std::thread thread_;
};

}  // namespace offload::comch
