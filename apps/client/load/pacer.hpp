#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "apps/client/load/interval.hpp"
#include "apps/client/requests/arrivals.hpp"
#include "core/clock.hpp"

namespace offload::client {

/// The times of a load thread's part of an open loop.
struct PacerTimes {
  core::TimePoint start{};
  core::TimePoint measured_from{};  ///< requests due before are not counted: the warm-up
  core::TimePoint end = core::TimePoint::max();  ///< what is intended for it or later is never due
  core::Duration tolerance{};  ///< of noticing and of sending, until it counts as late
};

/// The requests of a load thread in an open loop: they become due by the clock, whatever the server
/// does. Two cursors walk the same arrivals: one notices what is due, so that it is known how late
/// this thread looked; the other is what was sent, so that what is due waits without memory. One
/// thread.
class Pacer {
 public:
  /// `limit`: requests in all.
  Pacer(const Arrivals& arrivals, const PacerTimes& times, std::uint64_t limit)
      : noticed_(arrivals), sent_(arrivals), times_(times), limit_(limit) {}

  /// Makes due what is intended for `now` or earlier, and records how late that was; at most
  /// kNoticedAtOnce requests, so that a thread that cannot keep up still sends and receives.
  void notice(core::TimePoint now, Interval& interval) {
    const std::uint64_t before = noticed_count_;
    std::uint64_t late_until = before;  // the older ones are the late ones
    while (!ended() && next() <= now && noticed_count_ - before < kNoticedAtOnce) {
      const core::Duration lag = now - next();
      if (lag > times_.tolerance) late_until = noticed_count_ + 1;
      if (next() >= times_.measured_from) {
        interval.lag.record(lag);
        ++interval.due;
        if (lag > times_.tolerance) ++interval.noticed_late;
      }
      noticed_.advance();
      ++noticed_count_;
    }
    if (late_until != before) add_noticed_late({before, late_until});
  }

  /// Requests that are due and were not taken.
  [[nodiscard]] std::uint64_t due() const noexcept { return noticed_count_ - sent_count_; }
  /// The size of the oldest of them, as a schedule numbers it. Precondition: due() > 0.
  [[nodiscard]] std::uint32_t next_size_class() const noexcept { return sent_.size_class(); }
  /// Takes the oldest, and returns its intended time. Precondition: due() > 0.
  core::TimePoint take(core::TimePoint now, Interval& interval) {
    const core::TimePoint intended = times_.start + sent_.next();
    if (now - intended > times_.tolerance) [[unlikely]] {
      if (!was_noticed_late() && intended >= times_.measured_from) ++interval.held_back;
    }
    sent_.advance();
    ++sent_count_;
    return intended;
  }
  /// Records, the first time it is called, how many requests have no response. To be called when
  /// nothing more becomes due. `in_flight`: the requests that were taken and are not answered.
  void note_unfinished(std::uint64_t in_flight, Interval& interval) noexcept {
    if (std::exchange(is_unfinished_noted_, true)) return;
    interval.unfinished += due() + in_flight;
  }
  /// Records the time from the intended time of a request until its response.
  void record_response(core::Duration response, Interval& interval) noexcept {
    interval.response.record(response);
    if (is_unfinished_noted_) interval.unfinished_age.record(response);
  }
  /// Gives up at `now` what is due, and whatever would become due.
  void close(core::TimePoint now, Interval& interval) {
    for (; due() > 0; sent_.advance(), ++sent_count_) {
      const core::TimePoint intended = times_.start + sent_.next();
      if (intended < times_.measured_from) continue;
      ++interval.never_sent;
      interval.unfinished_age.record(now - intended);
      // There was no time yet to send a request that became due just now.
      if (now - intended > times_.tolerance && !was_noticed_late()) ++interval.held_back;
    }
    limit_ = noticed_count_;
  }

  /// Returns whether no more requests become due.
  [[nodiscard]] bool ended() const noexcept {
    return noticed_count_ >= limit_ || noticed_.next() == core::Duration::max() ||
           next() >= times_.end;
  }
  /// When the next one becomes due. Precondition: !ended().
  [[nodiscard]] core::TimePoint next() const noexcept { return times_.start + noticed_.next(); }

 private:
  static constexpr std::uint64_t kNoticedAtOnce = 8192;

  /// Requests by number, without the last.
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
  };

  void add_noticed_late(Range range) {
    if (!noticed_late_.empty() && noticed_late_.back().end == range.first) {
      noticed_late_.back().end = range.end;
    } else {
      noticed_late_.push_back(range);
    }
  }
  /// Returns whether the oldest untaken request was noticed late.
  bool was_noticed_late() {
    while (!noticed_late_.empty() && noticed_late_.front().end <= sent_count_) {
      noticed_late_.pop_front();
    }
    return !noticed_late_.empty() && noticed_late_.front().first <= sent_count_;
  }

  Arrivals noticed_;
  Arrivals sent_;
  PacerTimes times_;
  std::uint64_t limit_;
  std::uint64_t noticed_count_ = 0;
  std::uint64_t sent_count_ = 0;
  bool is_unfinished_noted_ = false;
  /// The requests that were noticed late and may be untaken: one range for each time that this
  /// thread was away for longer than the tolerance.
  std::deque<Range> noticed_late_;
};

}  // namespace offload::client
