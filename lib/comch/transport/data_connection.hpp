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

/// The end of a channel whose contents, a slot's each, a DataConnection carries, and what that
/// calls. One thread, the engine's.
class DataHandler {
 public:
  /// Posts what there is to send, in each turn of the engine. Returns whether there was any.
  virtual bool post_sends() = 0;
  /// The oldest `count` posted contents are sent: their bytes are the handler's again.
  virtual void on_sent(std::size_t /*count*/) {}
  /// Where the peer's content of that number belongs if it is too long for packets: in a slot of
  /// the channel, with room for its max_content bytes.
  virtual std::byte* receive_buffer(std::uint64_t sequence) = 0;
  /// The peer's next content, in receive_buffer() if it is too long for packets. Its header is what
  /// kernels::is_valid_content() asks for; a batch's bytes are unchecked. False if it cannot be
  /// taken.
  virtual bool on_received(const protocol::DataHeader& header,
                           std::span<const std::byte> content) = 0;
  /// Whether a content of the peer is due, for a connection that carries slots.
  [[nodiscard]] virtual bool awaits_content() const noexcept { return false; }
  /// No more were received in this turn.
  virtual void on_receives_done() {}

 protected:
  ~DataHandler() = default;
};

/// Carries the contents of one channel's slots for one of its two ends, both ways, each counted
/// from 0. A content, be it a message or a batch, goes as one unit.
///
/// Flow control is by credits: each content that this side has sent whole lets the peer send one
/// beyond the initial credits. These are 0 for a server, whose worker only answers, and the
/// channel's depth for a worker. What breaks this, the order or the bounds of a header ends the
/// connection.
///
/// On its handler's engine, and one thread, the engine's. It ends before engine and handler.
/// Nothing allocates after construction.
class DataConnection {
 public:
  DataConnection(const DataConnection&) = delete;
  DataConnection& operator=(const DataConnection&) = delete;
  virtual ~DataConnection() = default;

  /// Sends a content in this turn; it stays as it is until DataHandler::on_sent(). One that is too
  /// long for packets lies in a slot of the channel. No more are under way than that has slots.
  virtual void post_send(const protocol::DataHeader& header, const std::byte* content) noexcept = 0;

  /// Whether it takes contents as they lie in their slots, and needs none beside the header; then
  /// the peer's come into their slots as well, and DataHandler hears of none.
  [[nodiscard]] virtual bool carries_slots() const noexcept { return false; }

  /// Whether the connection has ended; nothing is carried after that. Any thread.
  [[nodiscard]] bool failed() const noexcept {
    return failed_.load(std::memory_order_acquire);  // pairs with fail(): the reason is there
  }
  /// Why it has; null while it has not. Any thread.
  [[nodiscard]] const std::string* failure() const noexcept {
    return failed() ? &reason_ : nullptr;
  }

 protected:
  DataConnection(DataHandler& handler, const kernels::ChannelLayout& layout,
                 std::uint32_t initial_credits)
      : handler_(&handler), layout_(layout), initial_credits_(initial_credits) {}

  void fail(std::string_view reason) noexcept {
    fail_with([&] { return std::string(reason); });
  }
  /// `reason`() says why, where there is memory for that: a relay's thread may not end of it.
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
  /// Of the channel.
  [[nodiscard]] const kernels::ChannelLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::uint32_t initial_credits() const noexcept { return initial_credits_; }
  /// Contents of this side that are sent whole, and contents of the peer that were received.
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }

  /// The oldest `count` contents under way are sent.
  void complete_sends(std::size_t count) {
    sent_ += count;
    handler_->on_sent(count);
  }
  /// Whether the peer may have sent its next content.
  [[nodiscard]] bool peer_has_credit() const noexcept {
    return received_ < sent_ + initial_credits_;
  }
  /// Whether the peer may send a content with this header now. False: the connection has failed.
  bool check(const protocol::DataHeader& header) {
    if (!kernels::is_valid_content(layout_, header.length, header.count)) {
      fail_with([&] {
        return header.count == 0 ? "the peer sent a message of " + std::to_string(header.length) +
                                       " bytes, over the " + std::to_string(layout_.max_length) +
                                       " of the channel"
                                 : "the peer sent " + std::to_string(header.length) +
                                       " bytes, which are not a batch of " +
                                       std::to_string(header.count) + " messages";
      });
    } else if (header.sequence != received_ || !peer_has_credit()) {
      fail("the peer sent a message that is not due");
    }
    return !failed();
  }
  /// Hands on a content whose header was checked.
  void deliver(const protocol::DataHeader& header, std::span<const std::byte> content) {
    ++received_;
    if (!handler_->on_received(header, content)) fail("a message of the peer is not acceptable");
  }

 private:
  DataHandler* handler_;
  kernels::ChannelLayout layout_;
  std::uint32_t initial_credits_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::string reason_;
  std::atomic<bool> failed_{false};  ///< release in fail(), acquire in failed()
};

/// One end of a connection for a channel's contents before it carries any. The session's thread
/// makes it; start() is for the thread whose engine will carry them.
class DataEndpoint {
 public:
  DataEndpoint() = default;
  DataEndpoint(const DataEndpoint&) = delete;
  DataEndpoint& operator=(const DataEndpoint&) = delete;
  virtual ~DataEndpoint() = default;

  /// Once: the endpoint is used up. Throws Error.
  [[nodiscard]] virtual std::unique_ptr<DataConnection> start(progress::Engine& engine,
                                                              const kernels::ChannelView& channel,
                                                              DataHandler& handler,
                                                              std::uint32_t initial_credits) = 0;
};

}  // namespace offload::comch
