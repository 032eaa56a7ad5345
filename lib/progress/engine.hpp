#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <vector>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "core/intrusive_list.hpp"
#include "progress/usage_check.hpp"

namespace offload::progress {

/// Takes the events of a descriptor. It may unwatch itself, or others, from inside.
class EventHandler {
 public:
  virtual void on_events(std::uint32_t epoll_events) = 0;

 protected:
  ~EventHandler() = default;
};

/// What may turn up any moment, so that looking again at once pays.
enum class Expecting : std::uint8_t {
  nothing,
  from_device,  ///< a GPU or a NIC is at it: every look counts
  from_thread,  ///< a thread is at it, or about to be, and may need this very processor
};

/// Work that is found by looking at memory, not by waiting for a descriptor.
class Pollable : public core::ListNode<Pollable> {
 public:
  /// Does what there is to do, up to a bound of its own. Returns whether there was anything.
  virtual bool poll() = 0;

  [[nodiscard]] virtual Expecting expecting() const = 0;

  /// Asks to be woken through one of the engine's descriptors. Returns how long the engine may
  /// sleep before it must poll all the same: Duration::max() where the wake-up is certain.
  /// The engine polls once more between arm() and sleeping.
  virtual core::Duration arm() = 0;
  /// Also comes to what became active after the others were armed.
  virtual void disarm() = 0;

 protected:
  ~Pollable() = default;
};

/// Drives the work of one thread: polls what is in memory, waits for what is a descriptor.
///
/// run_once() does both: while there is work it makes one epoll_wait(0) a turn and no other system
/// call; without, it spins while something is expected, for at most `spin`, then arms and sleeps,
/// which is one epoll_wait as well. Between two looks for the work of a thread it yields the
/// processor.
///
/// A program with a loop of its own calls progress() instead, and sleeps on fd() so:
///
///     while (engine.progress()) continue;
///     const Duration limit = engine.arm();
///     if (!engine.progress()) wait until fd() is readable, for at most `limit`;
///     engine.disarm();
///
/// One thread at a time, except notify(); no turn from inside a callback. Builds with assertions
/// end the program where that is broken.
class Engine {
 public:
  explicit Engine(core::Duration spin = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Delivers `epoll_events` of `fd` to `handler`, until unwatch. Throws Error.
  void watch(int fd, std::uint32_t epoll_events, EventHandler& handler);
  /// Asks for other events of a descriptor that is watched. Throws Error.
  void rewatch(int fd, std::uint32_t epoll_events, EventHandler& handler);
  /// To be called before `fd` is closed. Events already fetched for its handler are dropped.
  void unwatch(int fd, EventHandler& handler) noexcept;

  /// Polls `pollable` in every turn, for as long as the engine lives: after the active ones, so
  /// that it finds what their callbacks left for it.
  void attach(Pollable& pollable);
  /// Polls `pollable` from this turn or the next on, until deactivate(). Both take constant time
  /// and allocate nothing, and may be called from inside a poll and where it is so already. Between
  /// arm() and disarm(), activate() makes fd() readable.
  void activate(Pollable& pollable) noexcept {
    const UsageCheck::Call call(usage_, "activate");
    if (armed_) note_unarmed_work();
    if (!ActiveList::is_linked(pollable)) active_.push_back(pollable);
  }
  void deactivate(Pollable& pollable) noexcept;

  /// One turn: polls, or sleeps until something happens or `deadline` comes. Returns whether there
  /// was work.
  bool run_once(core::TimePoint deadline);

  /// One turn that does not wait: polls everything once and, every 16th time and after events,
  /// takes the events that are there. Returns whether there was work.
  bool progress();

  /// Readable while an event waits that no turn took; for a poll or an epoll of the caller's own.
  [[nodiscard]] int fd() const noexcept { return epoll_.get(); }
  /// Asks for a wake-up through fd(). Returns how long the caller may sleep: zero where something
  /// has to be polled, Duration::max() where the wake-up is certain. The caller makes one more turn
  /// between arm() and sleeping, for what came before.
  core::Duration arm();
  /// Takes the request back. The next turn looks at the descriptors.
  void disarm();

  /// Ends the sleep of run_once, or makes fd() readable. Any thread.
  void notify() noexcept;

  /// The time as of this turn, for what need not be exact: saves reading the clock. Of a turn of
  /// run_once its begin; of one of progress() when it was first asked for.
  [[nodiscard]] core::TimePoint now() noexcept {
    if (!knows_time_) now_ = core::Clock::now();
    knows_time_ = true;
    return now_;
  }

 private:
  using ActiveList = core::IntrusiveList<Pollable>;

  void note_unarmed_work() noexcept;
  void control(int operation, int fd, std::uint32_t epoll_events, EventHandler& handler);
  bool end_turn(bool worked, bool look);
  bool poll_all();
  bool take_events(core::Duration timeout);
  bool sleep(core::TimePoint deadline);
  core::Duration arm_all();
  void disarm_all();
  [[nodiscard]] Expecting expecting();

  core::Fd epoll_;
  core::Fd wake_;
  core::Duration spin_;
  core::TimePoint now_;
  bool knows_time_ = false;  ///< of this turn: a clock costs as much as an empty turn
  core::TimePoint last_work_ = core::Clock::now();
  std::uint32_t turns_to_look_ = 0;
  bool armed_ = false;             ///< the pollables are
  bool armed_by_caller_ = false;   ///< with arm(), not by sleep()
  bool has_unarmed_work_ = false;  ///< something was activated since
  std::vector<Pollable*> pollables_;
  ActiveList active_;
  ActiveList to_poll_;  ///< of the active ones, those that this turn has not come to
  std::vector<epoll_event> events_;
  std::size_t next_event_ = 0;
  std::size_t event_count_ = 0;
  UsageCheck usage_;
};

}  // namespace offload::progress
