#pragma once

#include <cstdint>
#include <optional>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "core/intrusive_list.hpp"
#include "net/backlog.hpp"
#include "net/output_batch.hpp"
#include "net/receive_buffer.hpp"
#include "progress/engine.hpp"
#include "protocol/frame.hpp"

namespace offload::server {

class Connection;

/// Who hears that a connection wants attention.
class ConnectionOwner {
 public:
  virtual void on_ready(Connection& connection) = 0;

 protected:
  ~ConnectionOwner() = default;
};

/// Tells the list of lingering connections from the queues that one stands in.
struct Lingering;

/// One client: its socket, what was read and not yet forwarded, what was answered and not yet
/// sent. It knows nothing of channels. Its thread only.
///
///   open ──bad frame──▶ refusing ─┐           (answers what came before, then the error)
///     ├────end of file─▶ draining ─┼─▶ lingering ─▶ closed
///     └────shutdown────▶ draining ─┘   (sent all, said so; discards until the client closes)
///
/// A closed connection lives on until the last of its requests is answered.
class Connection final : public progress::EventHandler,
                         public core::ListNode<Connection>,
                         public core::ListNode<Lingering> {
 public:
  enum class State : std::uint8_t { open, draining, refusing, lingering, closed };
  /// Which queue of its owner it stands in.
  enum class Queue : std::uint8_t { none, ready, waiting };

  Connection(core::Fd fd, progress::Engine& engine, memory::BlockCache& cache,
             ConnectionOwner& owner);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Reads once, as much as there is room for. After it the state may be another.
  void receive();
  /// What came and was not taken.
  net::ReceiveBuffer& input() noexcept { return input_; }
  /// Whether a receive() would find something, and its frames would be taken.
  [[nodiscard]] bool wants_to_read() const noexcept {
    return state_ == State::open && readable_ && backlog_.empty();
  }
  /// Whether room for requests is all it needs to go on. Who has hung up needs none to be read: an
  /// end of file is not to wait for room.
  [[nodiscard]] bool waits_for_room() const noexcept {
    if (state_ != State::open && state_ != State::draining) return false;
    return holds_frames || (wants_to_read() && !hung_up_);
  }

  /// Output of a batch, sent by send().
  net::IovecChain& chain() noexcept { return chain_; }
  /// Sends the chain and what was left before. What the client does not take now is kept.
  void send(net::OutputBatch& gather);

  /// Stops reading; after all answers, sends an error frame and closes.
  void refuse(protocol::Refusal reason) noexcept;
  /// Stops reading; after all answers, closes.
  void drain() noexcept;
  /// To be called when the last answer was sent: goes on to lingering or closed.
  void finish(net::OutputBatch& gather);
  void close() noexcept;

  void add_request() noexcept { ++in_flight_; }
  void remove_request() noexcept { --in_flight_; }
  [[nodiscard]] std::uint32_t in_flight() const noexcept { return in_flight_; }
  [[nodiscard]] bool finishing() const noexcept {
    return (state_ == State::draining || state_ == State::refusing) && in_flight_ == 0 &&
           backlog_.empty() && chain_.empty();
  }
  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool disposable() const noexcept {
    return state_ == State::closed && in_flight_ == 0 && chain_.empty();
  }
  /// Lingering ends then, whatever the client does.
  [[nodiscard]] core::TimePoint linger_deadline() const noexcept { return linger_deadline_; }

  // The owner's:
  std::size_t index = 0;      ///< among its connections
  Queue queue = Queue::none;  ///< a ListNode<Connection> is in it
  bool holds_frames = false;  ///< whole ones for which there was no room

 private:
  void on_events(std::uint32_t epoll_events) override;
  void discard();
  void send_backlog();

  core::Fd fd_;
  progress::Engine* engine_;
  ConnectionOwner* owner_;
  net::ReceiveBuffer input_;
  net::IovecChain chain_;
  net::Backlog backlog_;
  State state_ = State::open;
  protocol::Refusal reason_{};
  std::uint32_t in_flight_ = 0;
  bool readable_ = true;
  bool hung_up_ = false;  ///< the peer's end of file or an error is there to be read
  bool end_of_file_ = false;
  core::TimePoint linger_deadline_{};
};

}  // namespace offload::server
