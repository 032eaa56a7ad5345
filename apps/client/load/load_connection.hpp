#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/client/load/checker.hpp"
#include "apps/client/load/errors.hpp"
#include "apps/client/load/flow.hpp"
#include "apps/client/load/target.hpp"
#include "core/clock.hpp"
#include "net/connect_attempt.hpp"
#include "net/receive_buffer.hpp"
#include "net/stream.hpp"
#include "progress/engine.hpp"

namespace offload::client {

/// A flow over a TCP connection. One send() sends a batch of requests and one recv() reads
/// all responses that have arrived; the clock is read once for each, so a latency lasts from before
/// the send() of its batch to after the recv() of its response. Payloads are not copied. It holds a
/// receive buffer only while a response is incomplete. If it breaks and errors are counted, it
/// connects again. Used by its load thread only.
class LoadConnection final : progress::EventHandler, public Flow {
 public:
  /// See Flow. `stream`: connected, after its handshake.
  LoadConnection(std::string name, std::uint32_t number, net::Stream stream, LoadShare& share);

  void start() override { go_on(); }
  void stop_sending() noexcept override;
  /// The server will have been silent for too long, or it is time to connect again.
  [[nodiscard]] core::TimePoint deadline() const noexcept override;
  void on_deadline(core::TimePoint now) override;
  void log_unanswered() override;

 private:
  [[nodiscard]] std::uint64_t in_flight() const noexcept { return sent_ - completed_; }
  [[nodiscard]] std::uint32_t next_batch() const noexcept override;
  Pending& pending(std::uint64_t request) noexcept { return pending_[request & pending_mask_]; }

  void on_events(std::uint32_t epoll_events) override;
  void go_on() override;
  void start_batch(std::uint32_t count) override;
  std::uint32_t add_run_of_one_size(std::uint32_t count);
  std::uint32_t add_mixed(std::uint32_t count);
  void add_pending(std::uint32_t number) { begin_pending(pending(sent_++), number); }
  bool flush() override;
  void skip_sent(std::size_t count) noexcept;
  void watch_for_room(bool wanted);

  bool receive_responses();
  void check_responses();
  bool complete_equal();
  bool complete_right(const Pending& request, std::size_t size);
  bool complete_wrong(const Pending& request, const FrameCheck& verdict);
  void take_unasked();

  void lose(ErrorKind kind, const Describe& what);
  void lose_connection(ErrorKind kind, const std::string& what);
  void close() noexcept;
  void end() noexcept override;

  void connect(core::TimePoint now);
  void continue_connecting();
  void fail_connecting(ErrorKind kind, std::string reason, core::TimePoint now);
  void count_failed_attempt(ErrorKind kind, std::string reason, core::TimePoint now);
  void retry_later(core::TimePoint now);
  void use(net::Stream stream);

  net::Stream stream_;                          ///< valid while it is connected
  std::optional<net::ConnectAttempt> attempt_;  ///< while it connects again
  core::TimePoint attempt_begin_{};
  core::TimePoint retry_at_{};  ///< when to connect again, if there is neither
  core::TimePoint give_up_at_{};
  std::size_t address_;  ///< of the target's, which attempts go to; the next one after a failure
  core::Duration pause_ = kFirstPause;
  std::vector<Pending> pending_;  ///< a ring, indexed by request number
  const std::uint64_t pending_mask_;
  net::ReceiveBuffer received_;
  std::vector<iovec> pieces_;                    ///< of the current batch, in the pool's memory
  std::size_t next_piece_ = 0;                   ///< the first that is not sent wholly
  std::uint64_t completed_ = 0;                  ///< requests answered or lost
  std::uint64_t connection_limit_ = UINT64_MAX;  ///< the value of sent_ at which it must connect
                                                 ///< again
  core::TimePoint last_sign_{};    ///< last receive, or the first send with nothing in flight
  bool watches_for_room_ = false;  ///< whether EPOLLOUT is watched, for pieces_
  bool told_why_ = false;          ///< what came last may be why the server closes; it was counted
  std::string send_error_;         ///< of a failed send(), after which nothing is sent
};

}  // namespace offload::client
