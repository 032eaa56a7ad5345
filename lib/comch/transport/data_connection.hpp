#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "kernels/slot_batch.hpp"
#include "progress/engine.hpp"
#include "protocol/data.hpp"

namespace offload::comch {

/// One end of a channel, whose contents, one for each slot, a DataConnection carries; the
/// connection calls these functions. One thread, the engine's.
class DataHandler {
 public:
  /// Posts the contents that are ready to send, in each turn of the engine. Returns whether there
  /// were any.
  virtual bool post_sends() = 0;
  /// The oldest `count` posted contents were sent: the handler may reuse their bytes.
  virtual void on_sent(std::size_t /*count*/) {}
  /// Returns the buffer for the peer's content of that number if it is too long for packets: in a
  /// slot of the channel, with room for its max_content bytes.
  virtual std::byte* receive_buffer(std::uint64_t sequence) = 0;
  /// Takes the peer's next content, in receive_buffer() if it is too long for packets. Its header
  /// passed kernels::is_valid_content(); the bytes of a batch are unchecked. Returns false if the
  /// content is not acceptable.
  virtual bool on_received(const protocol::DataHeader& header,
                           std::span<const std::byte> content) = 0;
  /// Returns whether a content of the peer is due, for a connection that carries slots.
  [[nodiscard]] virtual bool awaits_content() const noexcept { return false; }
  /// Called after the last content received in this turn.
  virtual void on_receives_done() {}

 protected:
  ~DataHandler() = default;
};

/// Carries the contents of one channel's slots for one of its two ends, both ways, each counted
/// from 0. A content, a message or a batch, is sent as one unit.
///
/// Flow control uses credits: each content that this side has sent completely allows the peer to
/// send one more than the initial credits. These are 0 for a server, whose worker only answers, and
/// the channel's depth for a worker. A violation of this, of the order or of the bounds of a header
/// ends the connection.
///
/// One thread, that of its handler's engine. Engine and handler outlive it. Nothing allocates after
/// construction.
class DataConnection {
 public:
  DataConnection& operator=(DataConnection&&) = delete;
  virtual ~DataConnection() = default;

  /// Sends a content in this turn; it must not change until DataHandler::on_sent(). A content that
  /// is too long for packets is in a slot of the channel. At most as many are in flight as the
  /// channel has slots.
  virtual void post_send(const protocol::DataHeader& header, const std::byte* content) noexcept = 0;

  /// Returns whether the connection sends contents from their slots, and needs only the header;
  /// then it also writes the peer's contents into their slots, without calls of DataHandler.
  [[nodiscard]] virtual bool carries_slots() const noexcept { return false; }

  /// Returns whether the connection has ended; it carries nothing after that. Any thread.
  [[nodiscard]] bool failed() const noexcept {
    return failed_.load(std::memory_order_acquire);  // pairs with fail(): the reason is there
  }
  /// Returns why the connection has ended; null while it has not. Any thread.
  [[nodiscard]] const std::string* failure() const noexcept {
    return failed() ? &reason_ : nullptr;
  }

 protected:
  DataConnection(DataHandler& handler, const kernels::ChannelLayout& layout,
                 std::uint32_t initial_credits)
      : handler_(&handler),
        layout_(layout),
        longest_(initial_credits == 0 ? layout.max_length : layout.max_request),
        initial_credits_(initial_credits) {}

  void fail(std::string_view reason) noexcept {
    fail_with([&] { return std::string(reason); });
  }
  /// Calls `reason`() for the text. A lack of memory for it must not end the thread of a relay.
  template <class Reason>
  void fail_with(const Reason& reason) noexcept {
    if (failed()) return;
    try {
      reason_ = reason();
    } catch (const std::bad_alloc&) {
      reason_ = "no memory";  // short enough to need none
    }
    failed_.store(true, std::memory_order_release);  // pairs with failed()
  }

  [[nodiscard]] DataHandler& handler() const noexcept { return *handler_; }
  /// Returns the layout of the channel.
  [[nodiscard]] const kernels::ChannelLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::uint32_t initial_credits() const noexcept { return initial_credits_; }
  /// Return the number of contents that this side has sent completely, and received from the peer.
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }

  /// Records that the oldest `count` contents in flight were sent.
  void complete_sends(std::size_t count) {
    sent_ += count;
    handler_->on_sent(count);
  }
  /// Returns whether the peer may have sent its next content.
  [[nodiscard]] bool peer_has_credit() const noexcept {
    return received_ < sent_ + initial_credits_;
  }
  /// Returns whether the peer may send a content with this header now. False: the connection has
  /// failed.
  bool check(const protocol::DataHeader& header) {
    if (!kernels::is_valid_content(longest_, header.length, header.count)) {
      fail_with([&] {
        return header.count == 0
                   ? "the peer sent a message of " + std::to_string(header.length) +
                         " bytes, over the " + std::to_string(longest_) + " of the channel"
                   : "the peer sent " + std::to_string(header.length) +
                         " bytes, which are not a batch of " + std::to_string(header.count) +
                         " messages";
      });
    } else if (header.sequence != received_ || !peer_has_credit()) {
      fail("the peer sent a message that is not due");
    }
    return !failed();
  }
  /// Passes a content to the handler; its header was checked.
  void deliver(const protocol::DataHeader& header, std::span<const std::byte> content) {
    ++received_;
    if (!handler_->on_received(header, content)) fail("a message of the peer is not acceptable");
  }

 private:
  DataHandler* handler_;
  kernels::ChannelLayout layout_;
  std::uint32_t longest_;  ///< bytes of the peer's message: a response, or at a worker a request
  std::uint32_t initial_credits_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::string reason_;
  std::atomic<bool> failed_{false};  ///< release in fail(), acquire in failed()
};

/// One end of a connection for a channel's contents, before it carries any. The session's thread
/// makes it; the thread whose engine will carry the contents calls start().
class DataEndpoint {
 public:
  DataEndpoint& operator=(DataEndpoint&&) = delete;
  virtual ~DataEndpoint() = default;

  /// Starts the connection and consumes the endpoint; callable once. Throws Error.
  [[nodiscard]] virtual std::unique_ptr<DataConnection> start(progress::Engine& engine,
                                                              const kernels::ChannelView& channel,
                                                              DataHandler& handler,
                                                              std::uint32_t initial_credits) = 0;
};

}  // namespace offload::comch
