#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <vector>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "core/intrusive_list.hpp"
#include "progress/engine_times.hpp"
#include "progress/usage_check.hpp"

namespace offload::progress {

/// The receiver of a descriptor's events. on_events() may unwatch this or other descriptors.
class EventHandler {
 public:
  virtual void on_events(std::uint32_t epoll_events) = 0;

 protected:
  ~EventHandler() = default;
};

/// The kind of work that may arrive at any moment, so that polling again at once is worth it.
enum class Expecting : std::uint8_t {
  nothing,
  from_device,  ///< from a GPU or a NIC: poll without a pause
  from_thread,  ///< from a thread, which may need this processor: yield between polls
};

/// A source of work that is found by polling memory, not by waiting for a descriptor.
class Pollable : public core::ListNode<Pollable> {
 public:
  /// Does available work, within its own bound. Returns whether there was work.
  virtual bool poll() = 0;

  [[nodiscard]] virtual Expecting expecting() const = 0;

  /// Requests a wake-up through one of the engine's descriptors. Returns how long the engine may
  /// sleep before it must poll without one: Duration::max() if a wake-up is certain. The engine
  /// polls once more between arm() and the sleep.
  virtual core::Duration arm() = 0;
  /// Withdraws the request. May be called without arm(), if it became active after the arming.
  virtual void disarm() = 0;

 protected:
  ~Pollable() = default;
};

/// The event loop of one thread. A turn polls pollables and delivers events of descriptors.
///
/// run_once() is a turn that may sleep. While there is work it makes one epoll_wait(0) a turn and
/// no other system call. Without work it spins while work is expected, for at most `spin`, then
/// arms and sleeps in epoll_wait. While it expects work from a thread it yields between polls.
///
/// A program with another loop calls progress() instead, and sleeps on fd() like this:
///
///     while (engine.progress()) continue;
///     const Duration limit = engine.arm();
///     if (!engine.progress()) wait until fd() is readable, for at most `limit`;
///     engine.disarm();
///
/// Time limits of peers use run_time(), a clock that stands still while the thread is stopped
/// (SIGSTOP, a freezer, a paused machine) or busy itself: a peer is not late because this thread
/// did not run. run_once() detects such a gap if a turn, or the wake-up from its sleep, is more
/// than kLongestDelay late. In the turn that detects it the clock has not moved, and events are
/// delivered before it moves again. So the awaited event is looked for before the limit is over.
///
/// One thread at a time, except notify(); no turn inside a callback. Builds with assertions check
/// that, and end the program otherwise.
class Engine {
 public:
  /// A turn, or a wake-up, may be this late. A longer delay counts as a gap: the scheduler of a
  /// busy machine rarely takes longer.
  static constexpr core::Duration kLongestDelay = std::chrono::milliseconds(20);

  /// `times` outlives it; null: no times are counted.
  explicit Engine(core::Duration spin = {}, EngineTimes* times = nullptr);
  Engine& operator=(Engine&&) = delete;

  /// Delivers `epoll_events` of `fd` to `handler`, until unwatch(). Throws Error.
  void watch(int fd, std::uint32_t epoll_events, EventHandler& handler);
  /// Changes the events of a watched descriptor. Throws Error.
  void rewatch(int fd, std::uint32_t epoll_events, EventHandler& handler);
  /// Stops watching; to be called before `fd` is closed. Drops events that were already fetched for
  /// `handler`.
  void unwatch(int fd, EventHandler& handler) noexcept;

  /// Polls `pollable` in every turn for the engine's lifetime. It is polled after the active ones,
  /// so that it finds what their callbacks left for it.
  void attach(Pollable& pollable);
  /// Polls `pollable` from this turn or the next on, until deactivate(). Both take constant time,
  /// allocate nothing, may be called inside a poll, and do nothing if repeated. Between arm() and
  /// disarm(), activate() makes fd() readable.
  void activate(Pollable& pollable) noexcept {
    const UsageCheck::Call call(usage_, "activate");
    if (armed_) note_unarmed_work();
    if (!ActiveList::is_linked(pollable)) active_.push_back(pollable);
  }
  void deactivate(Pollable& pollable) noexcept {
    const UsageCheck::Call call(usage_, "deactivate");
    if (!ActiveList::is_linked(pollable)) return;
    ActiveList::remove(pollable);
    if (armed_) pollable.disarm();
  }

  /// One turn that may sleep, until there is work or an event, or `deadline`. Returns whether there
  /// was work.
  bool run_once(core::TimePoint deadline);
  /// Runs such turns until `ready()` returns true, for `limit` at most. Returns whether it did.
  template <class Ready>
  bool run_until(Ready ready, core::Duration limit) {
    const core::TimePoint deadline = core::Clock::now() + limit;
    while (!ready() && core::Clock::now() < deadline) run_once(deadline);
    return ready();
  }

  /// One turn that does not wait: polls everything once; every 16th turn, and the turn after
  /// events, takes events. It takes them first if more than 1 ms has gone by since they were last
  /// taken, in ticks of the kernel of 1 to 10 ms: the caller may have waited, or has long turns.
  /// Returns whether there was work.
  bool progress();

  /// The engine's epoll descriptor, readable while an event is pending; for the caller's own poll
  /// or epoll.
  [[nodiscard]] int fd() const noexcept { return epoll_.get(); }
  /// Requests a wake-up through fd(). Returns how long the caller may sleep: zero if something has
  /// to be polled, Duration::max() if a wake-up is certain. The caller makes one more turn between
  /// arm() and the sleep, for work that came before.
  core::Duration arm();
  /// Withdraws the request. The next turn checks the descriptors.
  void disarm();

  /// Ends the sleep of run_once, or makes fd() readable. Any thread.
  void notify() noexcept;

  /// The time of this turn: in run_once() that of its start, and after a sleep that of its end; in
  /// progress() read when first asked for.
  [[nodiscard]] core::TimePoint now() noexcept {
    if (!knows_time_) read_clock(core::Duration::max());
    return now_;
  }
  /// The same on the clock for limits. progress() finds no gaps: its caller may sleep.
  [[nodiscard]] core::RunTime run_time() noexcept {
    if (!knows_time_) read_clock(core::Duration::max());
    return run_time_;
  }
  /// Returns when run_time() will be `time`, if no time is lost until then: for run_once().
  [[nodiscard]] core::TimePoint when(core::RunTime time) noexcept {
    return time == core::RunTime::max() ? core::TimePoint::max() : now() + (time - run_time());
  }
  /// The caller has waited by itself since the last turn, as it meant to, for at most `longest`.
  void note_wait(core::Duration longest) noexcept { read_clock(longest); }

 private:
  using ActiveList = core::IntrusiveList<Pollable>;

  void note_unarmed_work() noexcept;
  void read_clock(core::Duration waited) noexcept;
  void end_time() noexcept;
  void end_sleep() noexcept;
  void control(int operation, int fd, std::uint32_t epoll_events, EventHandler& handler);
  bool look(core::TimePoint now);
  bool end_turn(core::TimePoint now, bool worked, bool must_look);
  bool poll_all();
  bool poll_active();
  bool take_events(core::Duration timeout);
  bool sleep(core::TimePoint deadline);
  core::Duration arm_all();
  void disarm_all();
  [[nodiscard]] Expecting expecting();

  core::Fd epoll_;
  core::Fd wake_;
  core::Duration spin_;
  EngineTimes* times_;
  core::TimePoint now_ = core::Clock::now();
  core::RunTime run_time_{now_.time_since_epoch()};
  core::Duration uncounted_{};  ///< of the last gap, for run_time_ once events were taken
  bool knows_time_ = false;     ///< now_ is of this turn; reading the clock costs as much as a turn
  core::TimePoint turn_began_ = now_;  ///< for times_, as is the next
  enum class Turn : std::uint8_t { polled, worked, slept } turn_ = Turn::polled;
  core::TimePoint last_work_ = now_;
  bool has_untimed_work_ = false;  ///< since last_work_
  std::uint32_t turns_to_look_ = 0;
  core::TimePoint last_look_{};    ///< begin of the turn that last took events without a wait
  bool armed_ = false;             ///< the pollables are armed
  bool armed_by_caller_ = false;   ///< by arm(), not by sleep()
  bool has_unarmed_work_ = false;  ///< a pollable was activated since the arming
  std::vector<Pollable*> pollables_;
  ActiveList active_;
  ActiveList to_poll_;  ///< the active ones that this turn has yet to poll
  std::vector<epoll_event> events_;
  std::size_t next_event_ = 0;
  std::size_t event_count_ = 0;
  UsageCheck usage_;
};

}  // namespace offload::progress
