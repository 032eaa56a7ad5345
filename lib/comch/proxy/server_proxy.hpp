#pragma once

#include <cstdint>

#include "channel/slot_queue.hpp"
#include "comch/proxy/channel_link.hpp"
#include "comch/transport/data_connection.hpp"

namespace offload::comch {

/// A server on another machine, as the worker's back end sees it: a channel of this machine whose
/// requester is a thread between the connection and the slots. It posts each content that comes,
/// sends each that answers one, and releases what is sent. It looks into none: the back end checks
/// requests, the server responses.
class ServerProxy final : public ChannelLink, DataHandler {
 public:
  /// `shape`: as the server described the channel. Throws Error.
  ServerProxy(const protocol::ChannelDescriptor& shape, std::unique_ptr<DataEndpoint> endpoint);
  ~ServerProxy() override { end_thread(); }

  // In place of start(), for who is the thread itself, as a test that decides on each turn:

  /// Before the first turn. Throws Error.
  void open(channel::Wakeup wakeup) override;
  /// One turn, which sleeps until `deadline` at most where there is no work. Returns whether there
  /// was.
  bool turn(core::TimePoint deadline) { return engine_.run_once(deadline); }

  [[nodiscard]] const std::string* failure() const noexcept override {
    return connection_->failure();
  }

  /// For the slots, on the thread: the back end has answered.
  void on_content(const channel::ContentResponse& response);

 private:
  bool post_sends() override { return false; }  // on_content() does
  void on_sent(std::size_t count) override;
  std::byte* receive_buffer(std::uint64_t sequence) override {
    return reinterpret_cast<std::byte*>(slots_.view().request(sequence).plain());
  }
  bool on_received(const protocol::DataHeader& header, std::span<const std::byte> content) override;
  void on_receives_done() override { slots_.flush(); }

  [[nodiscard]] const char* thread_name() const noexcept override { return "relay-"; }

  channel::SlotQueue slots_;
  std::unique_ptr<DataConnection> connection_;
  std::uint64_t answers_sent_ = 0;
};

}  // namespace offload::comch
