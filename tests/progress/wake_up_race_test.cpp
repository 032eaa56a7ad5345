#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include "core/cpu.hpp"
#include "core/fd.hpp"
#include "progress/context.hpp"
#include "progress/doorbell.hpp"
#include "progress/engine.hpp"
#include "progress/task_pool.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/readable.hpp"

namespace offload::progress {
namespace {

using namespace std::chrono_literals;
using core::Clock;
using core::Duration;
using core::TimePoint;

class EventContext;

class EventTask final : public Task {
 public:
  using ContextType = EventContext;
};

/// A context with one task at a time, which another thread works on and rings when it has done so.
class EventContext final : public Context, EventHandler {
 public:
  explicit EventContext(Engine& engine) : Context("event"), engine_(&engine) {
    connect(engine);
    engine.watch(eventfd_.get(), EPOLLIN | EPOLLET, *this);
  }
  ~EventContext() override { engine_->unwatch(eventfd_.get(), *this); }

  // For the other thread.

  [[nodiscard]] std::uint32_t submitted() const {
    return submitted_.load(std::memory_order_acquire);  // pairs with on_submit
  }
  void finish(std::uint32_t number) {
    finished_.store(number, std::memory_order_release);  // pairs with is_finished
    ringer_.ring();
  }

  [[nodiscard]] bool is_finished() const {
    return finished_.load(std::memory_order_acquire) == submitted_.load(std::memory_order_relaxed);
  }

 private:
  core::Status on_submit(Task&) noexcept override {
    submitted_.store(submitted() + 1, std::memory_order_release);
    return {};
  }
  bool on_poll(std::size_t) override {
    Task* const task = first_in_flight();
    if (task == nullptr || !is_finished()) return false;
    complete(*task, {});
    return true;
  }
  [[nodiscard]] Expecting expecting() const override { return Expecting::nothing; }
  Duration arm() override {
    waiter_.arm();
    return Duration::max();
  }
  void disarm() override { waiter_.disarm(); }
  void on_events(std::uint32_t) override {}  // the wake-up itself is all there is to it

  Engine* engine_;
  kernels::Doorbell word_{};
  core::Fd eventfd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  Waiter waiter_{word_, eventfd_.get()};
  Ringer ringer_{word_, eventfd_.get()};
  alignas(128) std::atomic<std::uint32_t> submitted_{0};
  alignas(128) std::atomic<std::uint32_t> finished_{0};
};

/// Tasks one after the other, each finished while the engine's thread goes to sleep, or nearly.
class SleepRace {
 public:
  static constexpr std::uint32_t kTasks = 1'000'000;
  static constexpr auto kLimit = 2500ms;  ///< then there are fewer
  static constexpr auto kSleep = 2s;      ///< who sleeps so long has been forgotten

  /// `turn` is one of the two ways to wait; it returns false if it has slept for kSleep.
  template <class Turn>
  void run(Turn turn) {
    const auto cpus = core::allowed_cpus();  // on one processor there would be no race
    std::latch pinned(1);                    // one after the other: libnuma has a cache
    std::thread other([&] {
      pinned.wait();
      core::pin_this_thread(cpus.front());
      finish_tasks();
    });
    std::thread owner([&] {
      core::pin_this_thread(cpus.back());
      pinned.count_down();
      submit_tasks(turn);
      ended_.store(true, std::memory_order_relaxed);  // nothing hangs on it
    });
    owner.join();
    other.join();
  }

  Engine& engine() { return engine_; }
  [[nodiscard]] std::uint32_t completed() const { return completed_; }
  [[nodiscard]] std::uint32_t lost() const { return lost_; }
  std::uint32_t sleeps = 0;

 private:
  /// Now one side is sooner and now the other: each offset of the two is met.
  static void pause(std::uint32_t turns) {
    for (std::uint32_t i = 0; i < turns; ++i) core::cpu_relax();
  }

  void finish_tasks() {
    for (std::uint32_t number = 1;; ++number) {
      while (context_.submitted() < number) {
        if (ended_.load(std::memory_order_relaxed)) return;
        std::this_thread::yield();
      }
      pause(number % 64);
      context_.finish(number);
    }
  }

  template <class Turn>
  void submit_tasks(Turn turn) {
    TaskPool<EventTask> pool(context_, 1, callbacks());
    context_.start();
    EventTask& task = *pool.allocate();
    const TimePoint end = Clock::now() + kLimit;
    for (std::uint32_t number = 1; number <= kTasks && Clock::now() < end && lost_ == 0; ++number) {
      EXPECT_TRUE(context_.submit(task).ok());
      pause(number % 127);
      while (completed_ != number && lost_ == 0) {
        if (!turn(*this) && is_forgotten()) ++lost_;
      }
    }
    context_.stop();
  }

  /// The other thread may have been held up between its two steps: it gets its time.
  bool is_forgotten() {
    if (!context_.is_finished()) return false;
    const auto bound = std::chrono::milliseconds(support::kBound).count();
    return !support::is_readable(engine_.fd(), static_cast<int>(bound));
  }

  TaskPool<EventTask>::Callbacks callbacks() {
    const auto count = [](EventTask&, void* race) { ++static_cast<SleepRace*>(race)->completed_; };
    return {count, count, this};
  }

  Engine engine_;
  EventContext context_{engine_};
  std::uint32_t completed_ = 0;
  std::uint32_t lost_ = 0;
  std::atomic<bool> ended_{false};
};

bool turn_of_the_engine(SleepRace& race) {
  const TimePoint deadline = Clock::now() + SleepRace::kSleep;
  return race.engine().run_once(deadline) || Clock::now() < deadline;
}

bool turn_of_ones_own(SleepRace& race) {
  Engine& engine = race.engine();
  if (engine.progress()) return true;
  const Duration limit = std::min<Duration>(engine.arm(), SleepRace::kSleep);
  bool awake = true;
  if (!engine.progress()) {
    ++race.sleeps;
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
    awake = support::is_readable(engine.fd(), static_cast<int>(milliseconds));
  }
  engine.disarm();
  return awake;
}

TEST(WakeUpRace, RunOnceLosesNone) {
  SleepRace race;
  race.run(turn_of_the_engine);
  EXPECT_EQ(race.lost(), 0U);
  testing::Test::RecordProperty("tasks", static_cast<int>(race.completed()));
}

TEST(WakeUpRace, ALoopOfOnesOwnLosesNone) {
  SleepRace race;
  race.run(turn_of_ones_own);
  EXPECT_EQ(race.lost(), 0U);
  testing::Test::RecordProperty("tasks", static_cast<int>(race.completed()));
  testing::Test::RecordProperty("sleeps", static_cast<int>(race.sleeps));
}

}  // namespace
}  // namespace offload::progress
