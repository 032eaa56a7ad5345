#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "apps/client/load/errors.hpp"
#include "apps/client/load/load_share.hpp"
#include "core/clock.hpp"
#include "core/intrusive_list.hpp"

namespace offload::client {

/// A socket with requests in flight, a TCP connection or a UDP socket: in a closed loop as many as
/// it may have, in an open loop those that its load thread gives it. Used by its load thread only.
class Flow : public core::ListNode<Flow> {
 public:
  virtual ~Flow() = default;

  /// Sends the first requests of a closed loop.
  virtual void start() = 0;
  /// Sends up to `most` requests that are due. Precondition: share.pacer->due() > 0, and it is the
  /// first in share.with_room.
  void send_due(std::uint64_t most);
  /// A slot of it has ended to think: resume() sends its next request.
  void end_thinking() noexcept { --thinking_; }
  void resume() {
    if (!over_) go_on();
  }
  /// Sends no more requests; outstanding responses are still awaited.
  virtual void stop_sending() noexcept = 0;
  /// When something has to be done without an event, at the latest. Precondition: !over().
  [[nodiscard]] virtual core::TimePoint deadline() const noexcept = 0;
  /// To be called at the deadline or later.
  virtual void on_deadline(core::TimePoint now) = 0;
  /// Puts what is still in flight into the log of requests, at the end of a run.
  virtual void log_unanswered() = 0;

  /// Whether every request was answered, or the flow ended early.
  [[nodiscard]] bool over() const noexcept { return over_; }

 protected:
  /// A request in flight.
  struct Pending {
    core::TimePoint sent;
    core::TimePoint intended;  ///< = sent in a closed loop
    std::uint32_t number = 0;  ///< of the request in the pool
  };
  /// Makes a message for people, if it is needed.
  using Describe = std::function<std::string()>;

  /// `name`: for messages. `number`: over all threads; the seed of the choice of requests. `share`
  /// must outlive it.
  Flow(std::string name, std::uint32_t number, LoadShare& share);

  [[nodiscard]] bool is_open_loop() const noexcept { return share_.pacer.has_value(); }
  std::uint64_t random() noexcept;
  /// Chooses a request by the weights of the sizes, or the one that the schedule wants next, or the
  /// next in order.
  std::uint32_t choose() noexcept;
  /// Returns the next request in order, and goes on by `count`, which is at least 1.
  std::uint32_t take_in_order(std::uint32_t count) noexcept;
  /// Returns the number of requests from the next one in order to the last one of the pool.
  [[nodiscard]] std::uint32_t left_in_order() const noexcept {
    return share_.pool.size() - next_in_order_;
  }
  // Inline, as they are most of the work on a request:
  void begin_pending(Pending& request, std::uint32_t number) {
    request = {now_, is_open_loop() ? share_.pacer->take(now_, *share_.interval) : now_, number};
  }
  void count_answer(std::uint64_t count = 1) noexcept {
    Interval& interval = *share_.interval;
    interval.answered += count;
    if (share_.sending_ended) [[unlikely]]
      interval.answered_after_end += count;
    interval.last_answer = now_;
    if (share_.thinking) [[unlikely]]
      begin_thinking();
  }
  /// Counts the right response to request number `count` of this flow. Returns whether to go on.
  bool take_right(const Pending& request, std::uint64_t count) {
    Interval& interval = *share_.interval;
    count_answer();
    interval.service.record(now_ - request.sent);
    if (is_open_loop()) share_.pacer->record_response(now_ - request.intended, interval);
    const auto& deadline = share_.plan.deadline;
    if (deadline && now_ - request.intended > *deadline) [[unlikely]]
      return count_late(request, count);
    count_valid(1);
    log(request, std::nullopt);
    return true;
  }
  /// Returns whether right responses need no look at each one, so that take_equal() may be used.
  [[nodiscard]] bool may_take_equal() const noexcept {
    return !is_open_loop() && !share_.thinking && !share_.plan.deadline && !share_.log.on();
  }
  /// Does what take_right() does for `count` requests that were sent together, at `sent`.
  void take_equal(core::TimePoint sent, std::uint64_t count) noexcept {
    count_answer(count);
    share_.interval->service.record(now_ - sent, count);
    count_valid(count);
  }
  bool count_error(ErrorKind kind, std::uint64_t count, std::uint64_t request,
                   const Describe& what);
  void log(const Pending& request, std::optional<ErrorKind> error) {
    if (share_.log.on()) [[unlikely]]
      add_to_log(request, error);
  }

  /// Sends until as many are in flight as may be, or the socket takes no more. Returns whether it
  /// took all.
  bool fill_window();
  void join_ready();
  void leave_ready() noexcept;
  /// Marks it as over. Returns whether it was not.
  bool set_over() noexcept;

  /// Sends what is left of the batch. Returns whether the socket took all of it.
  virtual bool flush() = 0;
  /// Returns the number of requests that may be added to the batch now.
  [[nodiscard]] virtual std::uint32_t next_batch() const noexcept = 0;
  virtual void start_batch(std::uint32_t count) = 0;
  /// Sends what may be sent, and goes on as that and what is in flight wants it.
  virtual void go_on() = 0;
  virtual void end() noexcept = 0;

  LoadShare& share_;
  std::uint32_t thinking_ = 0;   ///< slots that wait, of the window
  core::TimePoint now_{};        ///< the clock when a batch was last sent or read
  std::uint64_t request_limit_;  ///< requests to send in all
  std::uint64_t sent_ = 0;       ///< requests, those of a batch that is sent in part included
  std::string name_;

 private:
  void count_valid(std::uint64_t count) noexcept {
    share_.interval->valid += count;
    if (share_.sending_ended) [[unlikely]]
      share_.interval->valid_after_end += count;
  }
  void begin_thinking() noexcept;
  bool count_late(const Pending& request, std::uint64_t count);
  void add_to_log(const Pending& request, std::optional<ErrorKind> error);

  std::uint64_t random_;
  std::uint32_t number_;
  std::uint32_t next_in_order_ = 0;
  bool over_ = false;
};

}  // namespace offload::client
