#include "progress/engine.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <thread>

#include "core/error.hpp"
#include "tests/progress/engine_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace offload::progress {
namespace {

using namespace std::chrono_literals;
using core::Clock;
using core::Duration;
using core::TimePoint;
using support::kBound;

TEST(Engine, ReturnsAtItsDeadline) {
  Engine engine;
  const auto begin = Clock::now();
  EXPECT_FALSE(engine.run_once(begin + 20ms));
  EXPECT_GE(Clock::now() - begin, 20ms);
}

TEST(Engine, ADeadlineInThePastIsNoSleep) {
  Engine engine;
  EXPECT_FALSE(engine.run_once(TimePoint{}));
  EXPECT_FALSE(engine.run_once(in(-1h)));
}

TEST(Engine, RunsTurnsUntilTheConditionHoldsOrTheLimitIsOver) {
  Engine engine;
  int turns = 0;
  const auto holds = [&] { return engine.notify(), ++turns >= 3; };
  EXPECT_TRUE(engine.run_until(holds, 1h));
  EXPECT_EQ(turns, 4) << "the last one tells the result";
  const auto begin = Clock::now();
  EXPECT_FALSE(engine.run_until([] { return false; }, 20ms));
  EXPECT_GE(Clock::now() - begin, 20ms);
}

TEST(Engine, DeliversEventsToTheirHandlers) {
  Engine engine;
  Signal first(engine);
  Signal second(engine);
  first.raise();
  EXPECT_TRUE(engine.run_once(in(kBound)));
  EXPECT_EQ(first.events, 1);
  EXPECT_EQ(second.events, 0);
  second.raise();
  EXPECT_TRUE(engine.run_once(in(kBound)));
  EXPECT_EQ(first.events, 1);
  EXPECT_EQ(second.events, 1);
  first.raise();
  second.raise();
  EXPECT_TRUE(engine.run_once(in(kBound)));
  EXPECT_EQ(first.events, 2);
  EXPECT_EQ(second.events, 2);
}

TEST(Engine, AnEventEndsASleep) {
  Engine engine;
  Signal signal(engine);
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    signal.raise();
  });
  EXPECT_TRUE(engine.run_once(in(kBound)));
  other.join();
  EXPECT_EQ(signal.events, 1);
}

TEST(Engine, WatchingCanFail) {
  Engine engine;
  Signal signal(engine);
  EXPECT_THROW(engine.watch(-1, EPOLLIN, signal), core::Error);
  EXPECT_THROW(engine.watch(signal.fd(), EPOLLIN, signal), core::Error);
}

TEST(Engine, AnUnwatchedDescriptorIsSilent) {
  Engine engine;
  Signal signal(engine);
  signal.raise();
  signal.unwatch();
  EXPECT_FALSE(engine.run_once(in(1ms)));
  EXPECT_EQ(signal.events, 0);
  engine.watch(signal.fd(), EPOLLIN | EPOLLET, signal);
  EXPECT_TRUE(engine.run_once(in(kBound)));
  EXPECT_EQ(signal.events, 1);
}

TEST(Engine, OtherEventsOfADescriptorCanBeAskedFor) {
  Engine engine;
  Signal signal(engine);
  engine.rewatch(signal.fd(), 0, signal);
  signal.raise();
  EXPECT_FALSE(engine.run_once(in(1ms)));
  engine.rewatch(signal.fd(), EPOLLIN, signal);
  for (int i = 1; i <= 3; ++i) {  // level-triggered now
    EXPECT_TRUE(engine.run_once(in(kBound)));
    EXPECT_EQ(signal.events, i);
  }
  signal.unwatch();
  EXPECT_THROW(engine.rewatch(signal.fd(), EPOLLIN, signal), core::Error);
}

TEST(Engine, AHandlerMayUnwatchItself) {
  Engine engine;
  Signal signal(engine);
  signal.then = [&] { signal.unwatch(); };
  signal.raise();
  EXPECT_TRUE(engine.run_once(in(kBound)));
  signal.raise();
  EXPECT_FALSE(engine.run_once(in(1ms)));
  EXPECT_EQ(signal.events, 1);
}

// Both events were fetched together: the second one's handler may be gone by now.
TEST(Engine, AHandlerMayEndAnotherWhoseEventIsFetchedAlready) {
  for (const bool first_ends_second : {true, false}) {
    Engine engine;
    auto first = std::make_unique<Signal>(engine);
    auto second = std::make_unique<Signal>(engine);
    int handled = 0;
    first->then = [&] {
      ++handled;
      second.reset();
    };
    second->then = [&] {
      ++handled;
      first.reset();
    };
    // Events come in the order in which they were raised.
    (first_ends_second ? first : second)->raise();
    (first_ends_second ? second : first)->raise();
    EXPECT_TRUE(engine.run_once(in(kBound)));
    EXPECT_EQ(handled, 1);
  }
}

TEST(Engine, AHandlerMayEndTheLastOneWhoseEventIsFetchedAlready) {
  Engine engine;
  Signal first(engine);
  Signal second(engine);
  auto third = std::make_unique<Signal>(engine);
  int handled = 0;
  third->then = [&] { ++handled; };
  first.then = [&] { third.reset(); };
  first.raise();
  second.raise();
  third->raise();
  EXPECT_TRUE(engine.run_once(in(kBound)));
  EXPECT_EQ(second.events, 1);
  EXPECT_EQ(handled, 0);
}

TEST(Engine, AHandlerMayWatchAnother) {
  Engine engine;
  Signal signal(engine);
  std::unique_ptr<Signal> born;
  signal.then = [&] {
    born = std::make_unique<Signal>(engine);
    born->raise();
  };
  signal.raise();
  EXPECT_TRUE(engine.run_once(in(kBound)));
  EXPECT_TRUE(engine.run_once(in(kBound)));
  ASSERT_NE(born, nullptr);
  EXPECT_EQ(born->events, 1);
}

TEST(Engine, NotifyFromAnotherThreadEndsASleep) {
  Engine engine;
  for (int i = 0; i < 3; ++i) {       // the wake-up of one sleep does not wake the next one
    const auto begin = Clock::now();  // before the other thread sleeps
    std::thread other([&] {
      std::this_thread::sleep_for(10ms);
      engine.notify();
    });
    EXPECT_TRUE(engine.run_once(kNoDeadline));
    EXPECT_GE(Clock::now() - begin, 10ms);
    other.join();
  }
}

TEST(Engine, NotifyBeforeASleepIsNotLost) {
  Engine engine;
  engine.notify();
  engine.notify();
  EXPECT_TRUE(engine.run_once(in(kBound)));
  EXPECT_FALSE(engine.run_once(in(1ms)));
}

TEST(Engine, WorkIsPolledWithoutArming) {
  Engine engine;
  FakeWork work;
  engine.attach(work);
  work.pending = 3;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(engine.run_once(in(kBound)));
    EXPECT_EQ(work.done, i);
  }
  EXPECT_EQ(work.calls, "ppp");
}

TEST(Engine, ArmsPollsOnceMoreSleepsAndDisarms) {
  Engine engine;
  FakeWork work;
  engine.attach(work);
  EXPECT_FALSE(engine.run_once(in(5ms)));
  EXPECT_EQ(work.calls, "papd");
}

// The other thread does not ring if it handed the work over before it saw the arming.
TEST(Engine, WorkThatComesBetweenPollAndArmEndsTheSleepBeforeItBegins) {
  Engine engine;
  FakeWork work;
  engine.attach(work);
  work.on_arm = [&] { work.pending = 1; };
  EXPECT_TRUE(engine.run_once(kNoDeadline));
  EXPECT_EQ(work.done, 1);
  EXPECT_EQ(work.calls, "papd");
}

TEST(Engine, WorkOfAnyOneIsEnoughToStayAwake) {
  Engine engine;
  FakeWork idle;
  FakeWork busy;
  engine.attach(idle);
  engine.attach(busy);
  busy.pending = 1;
  EXPECT_TRUE(engine.run_once(in(kBound)));
  EXPECT_EQ(idle.calls, "p");
  busy.on_arm = [&] { busy.pending = 1; };
  EXPECT_TRUE(engine.run_once(in(kBound)));
  EXPECT_EQ(idle.calls, "ppapd");
}

TEST(Engine, TheShortestArmingBoundsTheSleep) {
  Engine engine;
  FakeWork patient;
  FakeWork hasty;
  hasty.sleep = 2ms;
  engine.attach(patient);
  engine.attach(hasty);
  const auto begin = Clock::now();
  EXPECT_FALSE(engine.run_once(kNoDeadline));
  EXPECT_GE(Clock::now() - begin, 2ms);
}

TEST(Engine, SpinsOnlyWhileSomethingIsExpected) {
  for (const Expecting expected : {Expecting::from_device, Expecting::from_thread}) {
    Engine engine(kBound);
    FakeWork other;
    FakeWork work;
    engine.attach(other);
    engine.attach(work);
    work.expects = expected;
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(engine.run_once(in(kBound)));
    EXPECT_EQ(work.calls, std::string(100, 'p'));
    work.expects = Expecting::nothing;
    work.calls.clear();
    EXPECT_FALSE(engine.run_once(in(1ms)));
    EXPECT_EQ(work.calls, "papd");
  }
}

TEST(Engine, SpinsNoLongerThanItsLimit) {
  const auto begin = Clock::now();
  Engine engine(5ms);
  FakeWork work;
  engine.attach(work);
  work.expects = Expecting::from_device;
  const auto slept = [&] { return work.calls.find('a') != std::string::npos; };
  EXPECT_TRUE(support::eventually(slept, [&] { engine.run_once(in(1ms)); }));
  EXPECT_GE(Clock::now() - begin, 5ms);
}

// Work is a sign of more work, and so is the end of a sleep.
TEST(Engine, SpinsAgainAfterWorkAndAfterASleep) {
  constexpr Duration kSpin = 5ms;
  Engine engine(kSpin);
  FakeWork work;
  engine.attach(work);
  work.expects = Expecting::from_device;
  std::this_thread::sleep_for(2 * kSpin);
  EXPECT_FALSE(engine.run_once(in(1ms)));
  EXPECT_EQ(work.calls, "papd");
  EXPECT_FALSE(engine.run_once(in(kBound)));
  EXPECT_EQ(work.calls, "papdp") << "it spins after the sleep";
  std::this_thread::sleep_for(2 * kSpin);
  work.pending = 1;
  EXPECT_TRUE(engine.run_once(in(kBound)));
  EXPECT_FALSE(engine.run_once(in(kBound)));
  EXPECT_EQ(work.calls, "papdppp") << "it spins after the work";
}

TEST(Engine, EachTurnThatWorkedTakesEvents) {
  Engine engine;
  FakeWork work;
  work.pending = 100;
  engine.attach(work);
  Signal signal(engine);
  for (int i = 1; i <= 20; ++i) {
    EXPECT_TRUE(engine.run_once(in(kBound)));
    signal.raise();
    EXPECT_TRUE(engine.run_once(in(kBound)));
    EXPECT_EQ(signal.events, i);
    EXPECT_TRUE(engine.run_once(in(kBound)));  // it found no events: the next look could be later
  }
}

TEST(Engine, EventsAreLookedAtWhileItSpinsAndWhileItWorks) {
  Engine engine(kBound);
  FakeWork work;
  engine.attach(work);
  Signal signal(engine);
  const auto came = [&] { return signal.events != 0; };
  work.expects = Expecting::from_device;
  signal.raise();
  EXPECT_TRUE(support::eventually(came, [&] { engine.run_once(in(kBound)); }));
  EXPECT_EQ(work.calls.find('a'), std::string::npos);

  signal.events = 0;
  work.pending = 1'000'000;
  signal.raise();
  EXPECT_TRUE(support::eventually(came, [&] { engine.run_once(in(kBound)); }));
  EXPECT_GT(work.pending, 0);
}

TEST(Engine, ASleepCostsNoProcessorTime) {
  Engine engine;
  FakeWork work;
  engine.attach(work);
  const auto used = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const auto before = used();
  EXPECT_FALSE(engine.run_once(in(300ms)));
  EXPECT_LT(used() - before, 50ms);
}

TEST(Engine, SaysWhereTheTimeWent) {
  const auto began = Clock::now();
  EngineTimes times;
  Engine engine(Duration{}, &times);
  FakeWork work;
  engine.attach(work);
  work.pending = 1;
  work.on_poll = [] { std::this_thread::sleep_for(5ms); };  // long work
  EXPECT_TRUE(engine.run_once(in(kBound)));
  work.on_poll = {};
  EXPECT_FALSE(engine.run_once(in(20ms)));
  // On a busy machine less time than that may be left for the sleep.
  const auto slept = [&] { return times.asleep.value() >= 15'000'000U; };
  EXPECT_TRUE(support::eventually(slept, [&] { EXPECT_FALSE(engine.run_once(in(20ms))); }));
  const auto took = static_cast<std::uint64_t>((Clock::now() - began).count());
  EXPECT_GE(times.busy.value(), 5'000'000U);
  EXPECT_GE(times.longest_turn.value(), 5'000'000U);
  EXPECT_LE(times.longest_turn.value(), times.busy.value());
  EXPECT_LE(times.busy.value() + times.polling.value() + times.asleep.value(), took);
  EXPECT_EQ(times.stalls.value(), 0U) << "without a limit nothing is a stall";
}

TEST(Engine, WhatIsDoneInsteadOfASleepOrAfterItsDeadlineIsWork) {
  EngineTimes times;
  Engine engine(Duration{}, &times);
  FakeWork work;
  engine.attach(work);
  work.on_arm = [&] {
    work.pending = 1;
    work.on_poll = [] { std::this_thread::sleep_for(5ms); };
  };
  EXPECT_TRUE(engine.run_once(kNoDeadline));
  work.on_arm = work.on_poll = {};
  EXPECT_FALSE(engine.run_once(in(1ms)));
  EXPECT_GE(times.busy.value(), 5'000'000U);
  const auto before = times.busy.value();
  std::this_thread::sleep_for(5ms);  // the caller does what the deadline was for
  EXPECT_FALSE(engine.run_once(Clock::now()));
  EXPECT_GE(times.busy.value() - before, 5'000'000U);
}

TEST(Engine, EventsAfterASleepAreWork) {
  EngineTimes times;
  times.stall_limit = 4'000'000;
  Engine engine(Duration{}, &times);
  Signal signal(engine);
  signal.then = [] { std::this_thread::sleep_for(5ms); };
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    signal.raise();
  });
  EXPECT_TRUE(engine.run_once(in(kBound)));
  other.join();
  EXPECT_FALSE(engine.run_once(Clock::now()));  // ends the turn before
  EXPECT_GT(times.asleep.value(), 0U);
  EXPECT_GE(times.longest_turn.value(), 5'000'000U);
  EXPECT_EQ(times.stalls.value(), 1U);
}

TEST(Engine, CountsTurnsWithWorkThatTakeTooLong) {
  EngineTimes times;
  times.stall_limit = 4'000'000;
  Engine engine(Duration{}, &times);
  FakeWork work;
  engine.attach(work);
  work.pending = 2;
  work.on_poll = [] { std::this_thread::sleep_for(5ms); };
  EXPECT_TRUE(engine.run_once(in(kBound)));
  EXPECT_EQ(times.stalls.value(), 0U);  // until the next turn begins
  work.on_poll = {};
  EXPECT_TRUE(engine.run_once(in(kBound)));
  EXPECT_EQ(times.stalls.value(), 1U);
  EXPECT_GE(times.last_stall.value(), 5'000'000U);
  times.stall_limit =
      std::chrono::nanoseconds(1h).count();  // a busy machine may make this turn as long
  EXPECT_FALSE(engine.run_once(Clock::now()));
  times.stall_limit = 4'000'000;
  EXPECT_FALSE(engine.run_once(in(10ms)));  // it sleeps for longer, which is no stall
  EXPECT_FALSE(engine.run_once(Clock::now()));
  EXPECT_EQ(times.stalls.value(), 1U);
}

TEST(Engine, NowIsTheTimeOfTheTurn) {
  Engine engine;
  engine.notify();
  const auto before = Clock::now();
  engine.run_once(in(kBound));
  EXPECT_GE(engine.now(), before);
  EXPECT_LE(engine.now(), Clock::now());
}

}  // namespace
}  // namespace offload::progress
