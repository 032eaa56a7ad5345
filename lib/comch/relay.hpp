#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "progress/engine.hpp"
#include "protocol/data.hpp"

namespace offload::comch {

/// Carries the messages of one channel over a connection, for one of its ends; a subclass puts them
/// where they belong. Payloads are sent from where they lie, and long ones received to where they
/// go. Nothing allocates after construction.
///
/// One thread: the engine's, which outlives it.
class Relay : progress::Pollable, progress::EventHandler {
 public:
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Whether the connection has ended; nothing is carried after that. Any thread.
  [[nodiscard]] bool failed() const noexcept {
    return failed_.load(std::memory_order_acquire);  // pairs with fail(): the reason is there
  }
  /// Why, once it has.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 protected:
  /// For messages of at most `max_length` bytes, of which `depth` are under way at most.
  Relay(progress::Engine& engine, core::Fd connection, std::uint32_t depth,
        std::uint32_t max_length);
  ~Relay();

  // What a subclass says.

  /// Pushes what there is to send. Returns whether there was any.
  virtual bool collect() = 0;
  /// The connection has taken the oldest `count` messages that were pushed: their payloads are the
  /// subclass's again.
  virtual void on_sent(std::size_t count) = 0;
  /// Where a payload too long for vectors goes; null if no such message is due.
  virtual std::byte* room(const protocol::DataHeader& header) = 0;
  /// A message came, a long one where room() said. False if none such is due.
  virtual bool take(const protocol::DataHeader& header, std::span<const std::byte> payload) = 0;
  /// No more came for now.
  virtual void on_taken() = 0;

  // What it calls.

  /// Sends a message in the next turn; `payload` stays as it is until on_sent().
  void push(const protocol::DataHeader& header, const std::byte* payload) noexcept;
  void fail(const std::string& reason);
  /// Messages that the connection has taken whole.
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }

 private:
  struct Outgoing {
    std::array<std::byte, protocol::kDataHeaderSize> header;
    const std::byte* payload;
    std::uint32_t length;
    [[nodiscard]] std::size_t size() const noexcept { return protocol::kDataHeaderSize + length; }
  };

  bool poll() override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;  // the connection's events come by themselves
  }
  core::Duration arm() override;
  void disarm() override {}
  void on_events(std::uint32_t epoll_events) override;

  bool send();
  void advance(std::size_t bytes);
  bool receive();
  bool receive_long();
  bool take_messages();
  [[nodiscard]] Outgoing& outgoing(std::uint64_t number) noexcept {
    return outgoing_[number % outgoing_.size()];
  }

  progress::Engine* engine_;
  core::Fd connection_;
  std::uint32_t max_length_;
  bool readable_ = true;
  bool writable_ = true;

  std::vector<Outgoing> outgoing_;
  std::vector<iovec> pieces_;
  std::uint64_t pushed_ = 0;
  std::uint64_t sent_ = 0;
  std::size_t sent_of_next_ = 0;  ///< bytes of message sent_

  std::unique_ptr<std::byte[]> input_;
  std::size_t input_size_ = 0;    ///< bytes in it that were not taken yet
  protocol::DataHeader long_;     ///< of the message that comes in
  std::byte* long_at_ = nullptr;  ///< where it goes; null: there is none
  std::size_t long_received_ = 0;

  std::string reason_;
  std::atomic<bool> failed_{false};  ///< release in fail(), acquire in failed()
};

}  // namespace offload::comch
