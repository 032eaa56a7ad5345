#include "progress/engine.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <thread>
#include <utility>

#include "core/cpu.hpp"
#include "core/error.hpp"

namespace offload::progress {
namespace {

using core::check_errno;
using core::Duration;
using core::TimePoint;

constexpr std::size_t kEventsAtOnce = 256;
/// While turns follow each other without a wait, every 16th checks the descriptors: that is a
/// system call, which costs as much as about ten polls of memory.
constexpr std::uint32_t kTurnsPerLook = 16;
/// However few the turns, a look comes after this time.
constexpr Duration kLongestWithoutLook = std::chrono::milliseconds(1);

/// True until epoll_pwait2 fails: before Linux 5.11 (ENOSYS), or in a container whose older seccomp
/// profile denies unknown calls (EPERM). Relaxed: it guards nothing, and a thread that does not see
/// it finds out for itself.
std::atomic<bool> has_nanoseconds{true};

/// An interrupted wait gives what is there: it may be that of a process that was stopped,
/// signal(7), whose limits are judged next.
int take_pending(int epoll, epoll_event* events, int count) {
  return std::max(::epoll_wait(epoll, events, count, 0), 0);
}

int wait_for_events(int epoll, epoll_event* events, int count, Duration timeout) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(timeout).count();
  const timespec limit{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  if (has_nanoseconds.load(std::memory_order_relaxed)) {
    const int ready = ::epoll_pwait2(epoll, events, count, &limit, nullptr);
    if (ready >= 0) return ready;
    if (errno == EINTR) return take_pending(epoll, events, count);
    if (errno != ENOSYS && errno != EPERM) core::throw_errno("epoll_pwait2");
    has_nanoseconds.store(false, std::memory_order_relaxed);
  }
  // In whole milliseconds, rounded up to avoid spinning, and limited to an int.
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  const int ready = ::epoll_wait(epoll, events, count,
                                 static_cast<int>(std::min<std::int64_t>(milliseconds, INT_MAX)));
  return ready >= 0 ? ready : take_pending(epoll, events, count);
}

}  // namespace

Engine::Engine(Duration spin, EngineTimes* times)
    : epoll_(check_errno(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      spin_(spin),
      times_(times),
      events_(kEventsAtOnce) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;  // edge-triggered: it need not be read
  check_errno(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event), "epoll_ctl");
}

void Engine::watch(int fd, std::uint32_t epoll_events, EventHandler& handler) {
  const UsageCheck::Call call(usage_, "watch");
  control(EPOLL_CTL_ADD, fd, epoll_events, handler);
}

void Engine::rewatch(int fd, std::uint32_t epoll_events, EventHandler& handler) {
  const UsageCheck::Call call(usage_, "rewatch");
  control(EPOLL_CTL_MOD, fd, epoll_events, handler);
}

void Engine::unwatch(int fd, EventHandler& handler) noexcept {
  const UsageCheck::Call call(usage_, "unwatch");
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  for (std::size_t i = next_event_; i < event_count_; ++i) {
    if (events_[i].data.ptr == &handler) events_[i].data.ptr = nullptr;
  }
}

void Engine::attach(Pollable& pollable) {
  const UsageCheck::Call call(usage_, "attach");
  pollables_.push_back(&pollable);
}

/// Work was activated after the pollables were armed: a sleep must not begin, or has to end.
void Engine::note_unarmed_work() noexcept {
  has_unarmed_work_ = true;
  if (armed_by_caller_) notify();
}

bool Engine::run_once(TimePoint deadline) {
  const UsageCheck::Turn in_turn(usage_, "run_once");
  read_clock({});
  if (times_ != nullptr) end_time();
  // For previous turns: the clock is not read after each of them.
  if (std::exchange(has_untimed_work_, false)) last_work_ = now_;
  const bool polled = poll_all();
  const bool may_spin = !polled && now_ - last_work_ < spin_;
  const Expecting expected = may_spin ? expecting() : Expecting::nothing;
  if (!polled && expected == Expecting::nothing) return sleep(deadline);  // it takes events
  if (end_turn(now_, polled, /*must_look=*/polled || now_ - last_look_ > kLongestWithoutLook)) {
    turn_ = Turn::worked;
    return true;
  }
  if (expected == Expecting::from_device) {
    core::cpu_relax();
  } else {
    std::this_thread::yield();
  }
  return false;
}

/// Since the last reading the thread may have slept for `waited`.
void Engine::read_clock(Duration waited) noexcept {
  const TimePoint before = std::exchange(now_, core::Clock::now());
  const Duration spent = now_ - before;
  knows_time_ = true;
  const Duration late = spent - waited;
  run_time_ += std::exchange(uncounted_, Duration{});
  if (late <= kLongestDelay) {
    run_time_ += spent;
    return;
  }
  // A gap that outlasts a sleep began at an unknown time within it: it counts as having begun as
  // long before the end as it lasted after it, so that a limit that ends the sleep is not over
  // immediately.
  run_time_ += std::max(waited - late, Duration{});
  uncounted_ = kLongestDelay;  // where each turn is late, limits come all the same
}

/// The last turn ends, as this one begins.
void Engine::end_time() noexcept {
  const auto spent = static_cast<std::uint64_t>(
      std::max(now_ - std::exchange(turn_began_, now_), Duration{}).count());
  switch (std::exchange(turn_, Turn::polled)) {
    case Turn::polled: return times_->polling.add(spent);
    case Turn::slept: return times_->asleep.add(spent);
    case Turn::worked:
      times_->busy.add(spent);
      if (spent > times_->longest_turn.value()) times_->longest_turn.set(spent);
      if (times_->stall_limit != 0 && spent >= times_->stall_limit) {
        times_->last_stall.set(spent);
        times_->stalls.add();
      }
  }
}

/// A sleep is followed by work: events, or the work of the deadline.
void Engine::end_sleep() noexcept {
  turn_ = Turn::slept;
  end_time();
  turn_ = Turn::worked;
}

bool Engine::progress() {
  const UsageCheck::Turn in_turn(usage_, "progress");
  knows_time_ = false;
  const TimePoint now = core::time_of_tick();
  const bool found = now - last_look_ > kLongestWithoutLook && look(now);
  const bool worked = poll_all();
  return end_turn(now, worked || found, /*must_look=*/false);
}

core::Duration Engine::arm() {
  const UsageCheck::Turn in_turn(usage_, "arm");
  armed_by_caller_ = true;
  return arm_all();
}

void Engine::disarm() {
  const UsageCheck::Turn in_turn(usage_, "disarm");
  armed_by_caller_ = false;
  disarm_all();
}

void Engine::control(int operation, int fd, std::uint32_t epoll_events, EventHandler& handler) {
  epoll_event event{};
  event.events = epoll_events;
  event.data.ptr = &handler;
  check_errno(::epoll_ctl(epoll_.get(), operation, fd, &event), "epoll_ctl");
}

/// Takes events. Returns whether there were some.
bool Engine::look(TimePoint now) {
  last_look_ = now;
  const bool found = take_events(Duration{});
  turns_to_look_ = found ? 0 : kTurnsPerLook - 1;
  return found;
}

/// Takes events if `must_look` is set or a look is due. `worked`: whether the turn's polls had
/// work. Returns whether the turn had work.
bool Engine::end_turn(TimePoint now, bool worked, bool must_look) {
  if (must_look || turns_to_look_ == 0) {
    worked = look(now) || worked;
  } else {
    --turns_to_look_;
  }
  has_untimed_work_ = has_untimed_work_ || worked;
  return worked;
}

bool Engine::sleep(TimePoint deadline) {
  const Duration timeout = std::min(std::max(deadline - now_, Duration{}), arm_all());
  // Finds work that came before the other side saw the arming; later work causes a wake-up.
  bool worked = poll_all();
  if (!worked) worked = take_events(has_unarmed_work_ ? Duration{} : timeout);
  if (worked) turn_ = Turn::worked;
  disarm_all();
  has_untimed_work_ = true;  // spin again after each sleep
  return worked;
}

bool Engine::poll_all() {
  Pollable* const first = active_.front();
  // After a poll that threw, the remaining elements are in the other list.
  const bool is_alone = first != nullptr && active_.next(*first) == nullptr && to_poll_.empty();
  bool worked = is_alone ? first->poll() : poll_active();  // it alone, where it is
  for (Pollable* pollable : pollables_) worked = pollable->poll() || worked;
  return worked;
}

bool Engine::poll_active() {
  bool worked = false;
  // Each is moved back before it is polled, because a poll may activate and deactivate any of them.
  // Newly active ones are polled in the next turn.
  to_poll_.splice_back(active_);
  while (Pollable* const pollable = to_poll_.pop_front()) {
    active_.push_back(*pollable);
    worked = pollable->poll() || worked;
  }
  return worked;
}

Duration Engine::arm_all() {
  armed_ = true;
  has_unarmed_work_ = false;
  Duration limit = Duration::max();
  for (Pollable* pollable : pollables_) limit = std::min(limit, pollable->arm());
  for (auto* it = active_.front(); it != nullptr; it = active_.next(*it)) {
    limit = std::min(limit, it->arm());
  }
  return limit;
}

void Engine::disarm_all() {
  armed_ = false;
  for (Pollable* pollable : pollables_) pollable->disarm();
  for (auto* it = active_.front(); it != nullptr; it = active_.next(*it)) it->disarm();
  turns_to_look_ = 0;
}

bool Engine::take_events(Duration timeout) {
  event_count_ = static_cast<std::size_t>(
      wait_for_events(epoll_.get(), events_.data(), static_cast<int>(events_.size()), timeout));
  if (timeout != Duration{}) {
    read_clock(timeout);
    if (times_ != nullptr) end_sleep();
  }
  for (next_event_ = 0; next_event_ < event_count_;) {
    const epoll_event event = events_[next_event_++];
    if (event.data.ptr != nullptr)
      static_cast<EventHandler*>(event.data.ptr)->on_events(event.events);
  }
  return event_count_ != 0;
}

Expecting Engine::expecting() {
  Expecting most = Expecting::nothing;
  for (const Pollable* pollable : pollables_) most = std::max(most, pollable->expecting());
  for (auto* it = active_.front(); it != nullptr; it = active_.next(*it)) {
    most = std::max(most, it->expecting());
  }
  return most;
}

void Engine::notify() noexcept {
  const std::uint64_t one = 1;
  // Fails only when 2^64 - 2 wake-ups are pending (eventfd(2)); then another is not needed.
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

}  // namespace offload::progress
