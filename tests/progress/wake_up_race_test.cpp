#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>

#include "channel/doorbell.hpp"
#include "core/fd.hpp"
#include "progress/context.hpp"
#include "progress/engine.hpp"
#include "progress/task_pool.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/race.hpp"
#include "tests/support/readable.hpp"

namespace offload::progress {
namespace {

using namespace std::chrono_literals;
using core::Clock;
using core::Duration;
using core::TimePoint;
namespace race = support::race;

class EventContext;

class EventTask final : public Task {
 public:
  using ContextType = EventContext;
};

/// A context with one task at a time, which another thread finishes and then rings.
class EventContext final : public Context, EventHandler {
 public:
  explicit EventContext(Engine& engine) : Context("event"), engine_(&engine) {
    connect(engine);
    engine.watch(bell_.waiting.get(), EPOLLIN | EPOLLET, *this);
  }
  ~EventContext() override { engine_->unwatch(bell_.waiting.get(), *this); }

  // For the other thread.

  [[nodiscard]] const std::atomic<std::uint32_t>& submissions() const { return submitted_; }
  void finish(std::uint32_t number) {
    finished_.store(number, std::memory_order_release);  // pairs with is_finished
    ringer_.ring();
  }

  // For the engine's thread.

  [[nodiscard]] std::uint32_t submitted() const {
    return submitted_.load(std::memory_order_relaxed);  // its own word
  }
  [[nodiscard]] bool is_finished() const {
    return finished_.load(std::memory_order_acquire) == submitted();
  }

 private:
  core::Status on_submit(Task&) noexcept override {
    submitted_.store(submitted() + 1, std::memory_order_release);  // pairs with await
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
  void on_events(std::uint32_t) override { waiter_.drain(); }

  Engine* engine_;
  kernels::Doorbell word_{};
  channel::DoorbellPipe bell_ = channel::DoorbellPipe::make();
  channel::Waiter waiter_{word_, bell_.waiting.get()};
  channel::Ringer ringer_{word_, bell_.ringing.get()};
  alignas(128) std::atomic<std::uint32_t> submitted_{0};
  alignas(128) std::atomic<std::uint32_t> finished_{0};
};

/// Runs tasks one after the other, each finished at about the time the engine's thread goes to
/// sleep.
class TaskRace {
 public:
  explicit TaskRace(std::uint32_t tasks) : tasks_(tasks) {}

  /// `wait` runs until the task is done, or it is lost.
  template <class Wait>
  void run(Wait wait) {
    race::run([&] { submit_tasks(wait); }, [&] { finish_tasks(); });
  }

  [[nodiscard]] bool is_done() const { return completed_ == context.submitted(); }
  /// Returns the number of the last task that was finished, and rung for.
  [[nodiscard]] const std::atomic<std::uint32_t>& rung() const { return rung_; }

  Engine engine;
  EventContext context{engine};
  std::uint32_t lost = 0;

 private:
  void finish_tasks() {
    for (std::uint32_t number = 1; number <= tasks_; ++number) {
      race::await(context.submissions(), number);
      race::pause(number % 32);
      context.finish(number);
      rung_.store(number, std::memory_order_release);  // pairs with await
    }
  }

  template <class Wait>
  void submit_tasks(Wait wait) {
    TaskPool<EventTask> pool(context, 1, callbacks());
    context.start();
    EventTask& task = *pool.allocate();
    for (std::uint32_t number = 1; number <= tasks_; ++number) {
      if (!context.submit(task).ok()) ++lost;
      race::pause(number % 61);
      wait(*this, number);
      while (!is_done()) engine.progress();  // one that was lost, too: the other thread goes on
      race::await(rung_, number);
      engine.progress();  // takes a late ring, which must not end the next sleep
    }
    context.stop();
  }

  TaskPool<EventTask>::Callbacks callbacks() {
    const auto count = [](EventTask&, void* race) { ++static_cast<TaskRace*>(race)->completed_; };
    return {count, count, this};
  }

  std::uint32_t tasks_;
  std::uint32_t completed_ = 0;
  std::atomic<std::uint32_t> rung_{0};
};

// The engine sleeps by itself, and each sleep takes microseconds: fewer rounds.
TEST(WakeUpRace, RunOnceLosesNone) {
  constexpr std::uint32_t kTasks = race::kRounds / 20;
  constexpr auto kSleep = 2s;  // a sleep this long has missed its wake-up
  TaskRace race(kTasks);
  race.run([&](TaskRace& self, std::uint32_t) {
    while (!self.is_done()) {
      const TimePoint deadline = Clock::now() + kSleep;
      if (self.engine.run_once(deadline) || Clock::now() < deadline) continue;
      if (!self.context.is_finished()) continue;  // the other thread was held up
      ++self.lost;
      return;
    }
  });
  EXPECT_EQ(race.lost, 0U);
  std::cout << kTasks << " rounds, asleep in most\n";
}

// A wait that would sleep now waits in memory until the ring is over, as in DoorbellRace: if the
// engine's descriptor is not readable by then, it never will be.
TEST(WakeUpRace, ALoopOfOnesOwnLosesNone) {
  TaskRace race(race::kRounds);
  std::uint32_t met = 0;
  std::uint32_t rung = 0;
  race.run([&](TaskRace& self, std::uint32_t number) {
    EXPECT_EQ(self.engine.arm(), Duration::max());
    if (self.engine.progress()) {
      ++met;
    } else {
      race::await(self.rung(), number);
      ++(support::is_readable(self.engine.fd(), 0) ? rung : self.lost);
    }
    self.engine.disarm();
  });
  EXPECT_EQ(race.lost, 0U);
  EXPECT_EQ(met + rung, race::kRounds);
  std::cout << race::kRounds << " rounds: " << met << " ends met after arming, " << rung
            << " rung for\n";
}

}  // namespace
}  // namespace offload::progress
