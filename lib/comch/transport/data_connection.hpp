#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/channel_layout.hpp"
#include "progress/engine.hpp"
#include "protocol/data.hpp"

/// A channel whose two ends are on two machines: what each end does with its messages, and who
/// carries them between the two.
namespace offload::comch {

/// One end of such a channel. What it calls and what calls it is one thread.
class DataHandler {
 public:
  /// Pushes what there is to send to its carrier. Returns whether there was any.
  virtual bool collect() = 0;
  /// The oldest `count` messages that were pushed are sent: their payloads are the end's again.
  virtual void on_sent(std::size_t count) = 0;
  /// Where the payload of the message of that number, counted since the worker attached, belongs
  /// if it is too long for packets.
  virtual std::byte* room(std::uint64_t sequence) = 0;
  /// Whether that message may come now.
  [[nodiscard]] virtual bool is_due(const protocol::DataHeader& header) const = 0;
  /// It came: one that is due, its payload at room() if it is a long one. False if it cannot be
  /// taken.
  virtual bool take(const protocol::DataHeader& header, std::span<const std::byte> payload) = 0;
  /// No more came for now.
  virtual void on_taken() = 0;

 protected:
  ~DataHandler() = default;
};

/// Carries the messages of one channel for one of its ends, on that end's engine. Nothing allocates
/// after construction. One thread, the engine's; it ends before engine and end.
class DataConnection {
 public:
  DataConnection() = default;
  DataConnection(const DataConnection&) = delete;
  DataConnection& operator=(const DataConnection&) = delete;
  virtual ~DataConnection() = default;

  /// Sends a message in the next turn; `payload` stays as it is until DataHandler::on_sent(). No
  /// more are under way than the channel has slots.
  virtual void push(const protocol::DataHeader& header, const std::byte* payload) noexcept = 0;
  /// Messages that are sent whole.
  [[nodiscard]] virtual std::uint64_t sent() const noexcept = 0;

  /// Whether the connection has ended; nothing is carried after that. Any thread.
  [[nodiscard]] bool failed() const noexcept {
    return failed_.load(std::memory_order_acquire);  // pairs with fail(): the reason is there
  }
  /// Why, once it has.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 protected:
  void fail(const std::string& reason) {
    if (failed()) return;
    reason_ = reason;
    failed_.store(true, std::memory_order_release);  // pairs with failed()
  }

 private:
  std::string reason_;
  std::atomic<bool> failed_{false};  ///< release in fail(), acquire in failed()
};

/// A connection that will carry a channel's messages: it can change threads until it does.
class DataEndpoint {
 public:
  DataEndpoint() = default;
  DataEndpoint(const DataEndpoint&) = delete;
  DataEndpoint& operator=(const DataEndpoint&) = delete;
  virtual ~DataEndpoint() = default;

  /// Once. `unasked`: how many messages may come beyond one for each that `end` sends: none to a
  /// server, whose worker answers; as many as there are slots to a worker. Throws Error.
  [[nodiscard]] virtual std::unique_ptr<DataConnection> carry(progress::Engine& engine,
                                                              const kernels::ChannelView& channel,
                                                              DataHandler& end,
                                                              std::uint32_t unasked) = 0;
};

}  // namespace offload::comch
