#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/progress/engine_fixture.hpp"
#include "tests/support/eventually.hpp"

/// The clock for time limits: the time that it counts, and the time that it omits. Bounds are on
/// differences of clocks that were read in order, so that a busy machine cannot break them.
namespace offload::progress {
namespace {

using namespace std::chrono_literals;
using core::Clock;
using core::Duration;
using core::RunTime;
using core::TimePoint;

constexpr Duration kGap = 10 * Engine::kLongestDelay;

/// Keeps the thread away from its engine, once.
void take_long(FakeWork& work) {
  work.pending = 1;
  work.on_poll = [&work] {
    work.on_poll = {};
    std::this_thread::sleep_for(kGap);
  };
}

/// Runs `sleep`(), which a signal's handler interrupts.
template <class Sleep>
void interrupt(void (*handler)(int), Sleep sleep) {
  struct sigaction action {};
  action.sa_handler = handler;
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  std::thread other([sleeper = ::pthread_self()] { ::pthread_kill(sleeper, SIGUSR1); });
  sleep();
  other.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(RunTime, FollowsTheClockOfAThreadThatIsThere) {
  Engine engine;
  engine.run_once({});
  const RunTime run = engine.run_time();
  const TimePoint real = engine.now();
  for (int i = 0; i < 20; ++i) engine.run_once(in(1ms));
  EXPECT_LE(engine.run_time() - run, engine.now() - real);
  EXPECT_GT(engine.run_time(), run);
}

TEST(RunTime, ASleepCounts) {
  Engine engine;
  engine.run_once({});
  // If the machine is too busy for one wake-up in time, the next may be in time.
  EXPECT_TRUE(support::eventually([&] {
    const RunTime before = engine.run_time();
    engine.run_once(in(2 * Engine::kLongestDelay));
    return engine.run_time() - before >= Engine::kLongestDelay;
  }));
}

TEST(RunTime, StandsStillInTheTurnThatFindsAGap) {
  Engine engine;
  FakeWork work;
  engine.attach(work);
  engine.run_once({});
  const TimePoint real = engine.now();
  const RunTime before = engine.run_time();
  take_long(work);
  engine.run_once({});
  EXPECT_LE(engine.run_time() - before, engine.now() - real);
  const RunTime gap_began = engine.run_time();
  engine.run_once({});
  EXPECT_LE(engine.run_time(), gap_began + Engine::kLongestDelay)
      << "what a gap before may have left";
  engine.run_once({});
  EXPECT_GE(engine.run_time(), gap_began + Engine::kLongestDelay) << "limits come all the same";
  EXPECT_LE(engine.run_time() - before, engine.now() - real - kGap + Engine::kLongestDelay);
}

// A poll judges a limit, and comes before the turn takes events.
TEST(RunTime, NothingIsDueAfterAGapBeforeEventsWereTaken) {
  Engine engine(1h);  // it spins: most turns take no events
  Signal signal(engine);
  FakeWork work;
  work.expects = Expecting::from_device;
  engine.attach(work);
  for (int i = 0; i < 3; ++i) engine.run_once({});
  take_long(work);
  work.pending = 0;
  engine.run_once({});
  // The limit exceeds the part of another gap that may still count.
  const RunTime due = engine.run_time() + Engine::kLongestDelay + 1ns;
  signal.raise();  // it came meanwhile
  int events_when_due = -1;
  ASSERT_TRUE(support::eventually([&] {
    work.on_poll = [&] {
      if (events_when_due < 0 && engine.run_time() >= due) events_when_due = signal.events;
    };
    engine.run_once({});
    return events_when_due >= 0;
  }));
  EXPECT_EQ(events_when_due, 1);
}

TEST(RunTime, ASleepThatLastsTooLongLeavesItsDeadlineSomeTime) {
  Engine engine;
  engine.run_once({});
  const RunTime due = engine.run_time() + kGap;
  static const TimePoint goes_on = engine.when(due) + 2 * kGap;
  interrupt([](int) { std::this_thread::sleep_until(goes_on); },
            [&] { engine.run_once(engine.when(due)); });
  EXPECT_LT(engine.run_time(), due);
  EXPECT_TRUE(support::eventually(
      [&] { return engine.run_once(engine.when(due)), engine.run_time() >= due; }));
}

// It may have begun at any time of the sleep: it counts as long before the end as it lasted after
// it.
TEST(RunTime, AGapThatOutlastsASleepLeavesTheRestOfTheSleep) {
  EXPECT_TRUE(support::eventually([] {
    Engine engine;
    engine.run_once({});
    const TimePoint real = engine.now();
    const RunTime before = engine.run_time();
    static TimePoint goes_on;
    goes_on = real + 3 * kGap / 2;
    interrupt([](int) { std::this_thread::sleep_until(goes_on); },
              [&] { engine.run_once(real + kGap); });
    // A busy machine may delay the begin or the end of the sleep.
    const Duration counted = engine.run_time() - before;
    return counted > Duration{} && counted == 2 * kGap - (engine.now() - real);
  }));
}

TEST(RunTime, AnInterruptedSleepTakesEvents) {
  Engine engine;
  Signal signal(engine);
  static Signal* raised = &signal;
  interrupt([](int) { raised->raise(); },
            [&] { EXPECT_TRUE(engine.run_once(in(support::kBound))); });
  EXPECT_EQ(signal.events, 1);
  for (int i = 0; i < 10; ++i) {  // the signal may come before the sleep
    interrupt([](int) {}, [&] { EXPECT_FALSE(engine.run_once(in(5ms))) << "there are none"; });
  }
}

TEST(RunTime, WhatACallerMeantToWaitCounts) {
  Engine engine;
  const TimePoint real = engine.now();
  const RunTime before = engine.run_time();
  std::this_thread::sleep_for(kGap);
  engine.note_wait(1h);
  EXPECT_EQ(engine.run_time() - before, engine.now() - real);
}

TEST(RunTime, ProgressCountsWhatItsCallerSleeps) {
  Engine engine;
  engine.progress();
  const TimePoint real = engine.now();
  const RunTime before = engine.run_time();
  std::this_thread::sleep_for(kGap);
  engine.progress();
  EXPECT_EQ(engine.run_time() - before, engine.now() - real);
  EXPECT_GE(engine.now() - real, kGap);
}

TEST(RunTime, WhenIsTheSameTimeOnTheOtherClock) {
  Engine engine;
  engine.run_once({});
  EXPECT_EQ(engine.when(engine.run_time() + 5s), engine.now() + 5s);
  EXPECT_EQ(engine.when(RunTime::max()), TimePoint::max());
  EXPECT_LT(engine.when(RunTime{}), engine.now());
}

}  // namespace
}  // namespace offload::progress
