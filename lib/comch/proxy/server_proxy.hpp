#pragma once

#include <cstdint>

#include "channel/slot_queue.hpp"
#include "comch/proxy/channel_link.hpp"
#include "comch/transport/data_connection.hpp"

namespace offload::comch {

/// Represents a server on another machine for the worker's back end: a channel of this machine
/// whose requester is a thread between the connection and the slots. It posts each content that
/// arrives, sends each answer, and releases what was sent. It inspects no content: the back end
/// checks requests, and the server checks responses.
class ServerProxy final : public ChannelLink, DataHandler {
 public:
  /// `shape`: the server's description of the channel. Throws Error.
  ServerProxy(const protocol::ChannelDescriptor& shape, std::unique_ptr<DataEndpoint> endpoint)
      : ChannelLink(shape),
        slots_(memory_.endpoint(), *this),
        connection_(endpoint->start(engine_, slots_.view(), *this, slots_.depth())) {
    import_channel();
  }
  ~ServerProxy() override { end_thread(); }

  // Instead of start(), for a caller that drives the loop itself, such as a test:

  /// Must be called before the first turn. Throws Error.
  void open(channel::Wakeup wakeup) override {
    slots_.set_wakeup(wakeup);
    slots_.open(engine_);
  }
  /// Runs one turn, which sleeps until `deadline` at most if there is no work. Returns whether
  /// there was work.
  bool turn(core::TimePoint deadline) { return engine_.run_once(deadline); }

  [[nodiscard]] const std::string* failure() const noexcept override {
    return connection_->failure();
  }

  /// Called by the slots, on the thread, when the back end has answered.
  void on_content(const channel::ContentResponse& response) {
    const auto length = static_cast<std::uint32_t>(response.bytes.size());
    // A header that the server's end would refuse is a failure of the request, not of the
    // connection.
    if (response.status != kernels::ResponseStatus::ok ||
        !kernels::is_valid_content(slots_.view().layout.max_length, length, response.count)) {
      constexpr auto kFailed = static_cast<std::uint16_t>(kernels::ResponseStatus::bad_length);
      return connection_->post_send({response.sequence, 0, 0, kFailed}, nullptr);
    }
    connection_->post_send(
        {response.sequence, length, static_cast<std::uint16_t>(response.count), 0},
        response.bytes.data());
  }

 private:
  bool post_sends() override { return false; }  // on_content() does
  void on_sent(std::size_t count) override {
    answers_sent_ += count;
    slots_.release_until(answers_sent_);
    slots_.flush();
  }
  std::byte* receive_buffer(std::uint64_t sequence) override {
    return reinterpret_cast<std::byte*>(slots_.view().request(sequence).plain());
  }
  bool on_received(const protocol::DataHeader& header,
                   std::span<const std::byte> content) override {
    if (slots_.full()) return false;
    slots_.post({content, header.count});
    return true;
  }
  void on_receives_done() override { slots_.flush(); }

  [[nodiscard]] const char* thread_name() const noexcept override { return "relay-"; }

  channel::SlotQueue slots_;
  std::unique_ptr<DataConnection> connection_;
  std::uint64_t answers_sent_ = 0;
};

}  // namespace offload::comch
