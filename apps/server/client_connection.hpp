#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "apps/server/view/thread_metrics.hpp"
#include "net/backlog.hpp"
#include "net/output_batch.hpp"
#include "net/receive_buffer.hpp"
#include "net/stream.hpp"
#include "progress/engine.hpp"
#include "protocol/frame.hpp"

namespace offload::server {

class ClientConnection;

/// Is told that a connection wants attention.
class ConnectionOwner {
 public:
  virtual void on_ready(ClientConnection& connection) = 0;

 protected:
  ~ConnectionOwner() = default;
};

enum class ConnectionState : std::uint8_t {
  open,
  draining,   ///< reads no more; what was read is answered
  refusing,   ///< as draining, and an error frame follows the answers
  lingering,  ///< all is sent and the client knows; its bytes are discarded until it closes
  closed,
};

enum class ConnectionEvent : std::uint8_t {
  end_of_file,   ///< the client sends no more
  drain,         ///< the server takes no more
  refuse,        ///< the client broke the protocol
  refusal_sent,  ///< the error frame is behind the answers
  all_sent,      ///< nothing is left to be answered or sent, and the client may still send
  close,         ///< all is sent and the client sends no more, or the connection broke
};

/// All transitions of a connection. An event that means nothing in a state leaves it.
constexpr ConnectionState next_state(ConnectionState state, ConnectionEvent event) noexcept {
  using enum ConnectionState;
  switch (event) {
    case ConnectionEvent::end_of_file:
    case ConnectionEvent::drain: return state == open ? draining : state;
    case ConnectionEvent::refuse: return state == open || state == draining ? refusing : state;
    case ConnectionEvent::refusal_sent: return state == refusing ? draining : state;
    case ConnectionEvent::all_sent: return state == draining ? lingering : state;
    case ConnectionEvent::close: return closed;
  }
  return state;
}

/// One client: its connection, what was read and not yet forwarded, what was answered and not yet
/// sent. It knows nothing of channels. Its thread only. A closed connection lives on until the last
/// of its requests is answered.
class ClientConnection final : progress::EventHandler {
 public:
  using State = ConnectionState;

  /// `stream`: its handshake is done. `block_size`: what one receive may take, bytes, but for the
  /// rest of a longer frame.
  ClientConnection(net::Stream stream, progress::Engine& engine, memory::BlockCache& cache,
                   std::size_t block_size, ConnectionOwner& owner);
  ~ClientConnection();
  ClientConnection& operator=(ClientConnection&&) = delete;

  /// Reads once, a bounded piece; this may change the state. Returns the number of bytes.
  /// `arrival`: set to the arrival of the last of them, where that is known; may be null.
  std::size_t receive(net::WallTime* arrival = nullptr);
  /// Returns the bytes that came and were not taken.
  net::ReceiveBuffer& input() noexcept { return input_; }
  [[nodiscard]] const net::ReceiveBuffer& input() const noexcept { return input_; }
  /// To be called when the whole frames of its input are taken: it holds no more memory than the
  /// rest needs.
  void settle() noexcept { input_.settle(frame_size()); }
  /// Returns whether there may be more to read.
  [[nodiscard]] bool readable() const noexcept { return readable_; }
  /// Whether a receive() would find something, and its frames would be taken.
  [[nodiscard]] bool wants_to_read() const noexcept {
    return state_ == State::open && readable_ && backlog_.empty() && !paused_;
  }
  /// Returns whether frames of its input may be taken: not from a client that does not take its
  /// responses, and not while it is paused.
  [[nodiscard]] bool takes_frames() const noexcept {
    return (state_ == State::open || state_ == State::draining) && backlog_.empty() && !paused_;
  }
  /// While it is paused nothing is read from it, and no frame is taken; responses are sent. It ends
  /// once the frames that it had sent are taken, unless it is refused.
  void set_paused(bool paused) noexcept { paused_ = paused; }
  [[nodiscard]] bool paused() const noexcept { return paused_; }
  /// Returns whether there is input that is not taken because of the pause.
  [[nodiscard]] bool holds_back() const noexcept {
    return paused_ && (readable_ || !input_.bytes().empty());
  }
  /// The peer's end of file, or an error, is there to be read.
  [[nodiscard]] bool hung_up() const noexcept { return hung_up_; }

  /// Output of a batch, sent by send().
  net::IovecChain& chain() noexcept { return chain_; }
  /// Sends the earlier rest and the chain. Keeps the bytes that the client does not take now.
  /// Returns the chain's bytes; 0 if they were dropped.
  std::size_t send(net::OutputBatch& output);
  /// Returns the output that the client has not taken.
  [[nodiscard]] const net::Backlog& backlog() const noexcept { return backlog_; }
  /// Returns, once, whether there was no memory for its input or output: then it is closed.
  [[nodiscard]] bool take_out_of_memory() noexcept { return std::exchange(out_of_memory_, false); }

  /// Returns whether it has memory of TLS, which it has until all is sent.
  [[nodiscard]] bool is_tls() const noexcept { return stream_.is_tls(); }
  /// Stops reading; after all answers, sends an error frame and closes. `text`: a constant to send
  /// instead, to a client of another protocol.
  void refuse(protocol::Refusal reason, std::string_view text = {}) noexcept;
  /// Stops reading; after all answers, closes.
  void drain() noexcept { apply(ConnectionEvent::drain, ConnectionEnd::shutdown); }
  /// To be called where finishing(): goes on to lingering or closed. An error frame that is due
  /// goes through `output`, which has room; to a slow client it takes another call.
  void finish(net::OutputBatch& output);
  /// `end`: why, unless it was about to end for another reason.
  void close(ConnectionEnd end = ConnectionEnd::peer) noexcept {
    apply(ConnectionEvent::close, end);
  }
  /// Why it ends, or has ended.
  [[nodiscard]] ConnectionEnd end() const noexcept { return end_; }

  void add_request() noexcept { ++in_flight_; }
  void remove_requests(std::uint32_t count) noexcept { in_flight_ -= count; }
  [[nodiscard]] std::uint32_t in_flight() const noexcept { return in_flight_; }
  /// Whether all is answered and sent, and finish() is to be called.
  [[nodiscard]] bool finishing() const noexcept {
    return (state_ == State::draining || state_ == State::refusing) && in_flight_ == 0 &&
           backlog_.empty() && chain_.empty() && !(paused_ && !input_.bytes().empty());
  }
  [[nodiscard]] State state() const noexcept { return state_; }
  /// Returns whether there are no references to it any more.
  [[nodiscard]] bool disposable() const noexcept {
    return state_ == State::closed && in_flight_ == 0 && chain_.empty();
  }

 private:
  void on_events(std::uint32_t epoll_events) override;
  void apply(ConnectionEvent event, ConnectionEnd end = ConnectionEnd::peer) noexcept;
  void discard();
  void send_backlog();
  void fail_for_memory() noexcept;
  [[nodiscard]] std::size_t frame_size() const noexcept;

  net::Stream stream_;
  progress::Engine* engine_;
  ConnectionOwner* owner_;
  net::ReceiveBuffer input_;
  net::IovecChain chain_;
  net::Backlog backlog_;
  State state_ = State::open;
  ConnectionEnd end_ = ConnectionEnd::peer;  ///< of the event by which it was no longer open
  protocol::Refusal reason_{};
  std::string_view refusal_text_;  ///< instead of an error frame, if not empty
  std::uint32_t in_flight_ = 0;
  bool readable_ = true;
  bool hung_up_ = false;
  bool paused_ = false;
  bool end_of_file_ = false;
  bool out_of_memory_ = false;
};

}  // namespace offload::server
