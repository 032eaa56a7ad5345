// Pollables that are active now and then, and loops of the caller.
#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "progress/engine.hpp"
#include "tests/progress/engine_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/readable.hpp"

namespace offload::progress {
namespace {

using namespace std::chrono_literals;
using core::Clock;
using core::Duration;
using support::is_readable;
using support::kBound;

// ---- Active pollables

TEST(Engine, PollsWhatIsActiveAndNothingElse) {
  Engine engine;
  FakeWork idle;
  FakeWork active;
  engine.activate(active);
  EXPECT_FALSE(engine.progress());
  EXPECT_FALSE(engine.progress());
  EXPECT_EQ(active.calls, "pp");
  engine.deactivate(active);
  EXPECT_FALSE(engine.progress());
  EXPECT_EQ(active.calls, "pp");
  EXPECT_EQ(idle.calls, "");
}

TEST(Engine, ActivatingTwiceIsAsGoodAsOnceAndSoIsDeactivating) {
  Engine engine;
  FakeWork work;
  engine.activate(work);
  engine.activate(work);
  engine.progress();
  EXPECT_EQ(work.calls, "p");
  engine.deactivate(work);
  engine.deactivate(work);
  engine.progress();
  EXPECT_EQ(work.calls, "p");
}

TEST(Engine, AnActivePollableThatIsDestroyedIsPolledNoMore) {
  Engine engine;
  FakeWork stays;
  auto goes = std::make_unique<FakeWork>();
  engine.activate(*goes);
  engine.activate(stays);
  goes.reset();
  engine.progress();
  EXPECT_EQ(stays.calls, "p");
}

TEST(Engine, WhatBecomesActiveInATurnIsPolledInTheNext) {
  Engine engine;
  FakeWork first;
  FakeWork second;
  first.on_poll = [&] { engine.activate(second); };
  second.on_poll = [&] {  // the two would keep one turn going for ever
    engine.deactivate(first);
    engine.activate(first);
  };
  engine.activate(first);
  engine.progress();
  EXPECT_EQ(first.calls, "p");
  EXPECT_EQ(second.calls, "");
  engine.progress();
  EXPECT_EQ(first.calls, "pp");
  EXPECT_EQ(second.calls, "p");
}

TEST(Engine, APollMayDeactivateOthers) {
  for (const bool itself : {true, false}) {
    Engine engine;
    FakeWork first;
    FakeWork second;
    FakeWork third;
    first.on_poll = [&] { engine.deactivate(itself ? first : second); };
    for (FakeWork* work : {&first, &second, &third}) engine.activate(*work);
    engine.progress();
    EXPECT_EQ(first.calls, "p");
    EXPECT_EQ(second.calls, itself ? "p" : "");
    EXPECT_EQ(third.calls, "p");
  }
}

TEST(Engine, AnExceptionOfOnePollLosesNoOther) {
  Engine engine;
  FakeWork bad;
  FakeWork good;
  bad.on_poll = [] { throw std::runtime_error("a callback"); };
  engine.activate(bad);
  engine.activate(good);
  EXPECT_THROW(engine.progress(), std::runtime_error);
  bad.on_poll = {};
  engine.progress();
  EXPECT_EQ(bad.calls, "pp");
  EXPECT_EQ(good.calls, "p");
}

TEST(Engine, WhatIsActiveIsArmedAndExpectedToo) {
  Engine engine;
  FakeWork work;
  work.sleep = 2ms;
  engine.activate(work);
  EXPECT_FALSE(engine.run_once(in(kBound)));
  EXPECT_EQ(work.calls, "papd");

  Engine spinning(kBound);
  FakeWork expecting;
  expecting.expects = Expecting::from_device;
  spinning.activate(expecting);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(spinning.run_once(in(kBound)));
  EXPECT_EQ(expecting.calls, std::string(100, 'p'));
}

// A poll may hand work to a context without counting it as its own work.
TEST(Engine, WhatBecomesActiveJustBeforeASleepEndsIt) {
  Engine engine;
  FakeWork first;
  FakeWork second;
  engine.activate(first);
  first.on_arm = [&] { first.on_poll = [&] { engine.activate(second); }; };
  second.pending = 1;
  EXPECT_FALSE(engine.run_once(kNoDeadline));
  EXPECT_TRUE(engine.run_once(kNoDeadline));
  EXPECT_EQ(second.done, 1);
  first.on_arm = {};
  first.on_poll = {};
  const auto begin = Clock::now();
  EXPECT_FALSE(engine.run_once(in(5ms)));
  EXPECT_GE(Clock::now() - begin, 5ms) << "the next sleep is one";
}

TEST(Engine, WhatIsDeactivatedWhileArmedIsDisarmed) {
  Engine engine;
  FakeWork work;
  engine.activate(work);
  engine.arm();
  engine.deactivate(work);
  engine.deactivate(work);
  engine.disarm();
  EXPECT_EQ(work.calls, "ad");
  engine.activate(work);
  engine.deactivate(work);
  EXPECT_EQ(work.calls, "ad") << "nothing is armed any more";
}

// ---- The caller's own loop

TEST(Engine, ATurnOfProgressDoesNotWait) {
  Engine engine;
  Signal signal(engine);
  EXPECT_FALSE(engine.progress());
  signal.raise();
  EXPECT_TRUE(support::eventually([&] { return signal.events == 1; }, [&] { engine.progress(); }));
}

TEST(Engine, AfterAWaitOfTheCallerEventsAreTakenBeforeThePolls) {
  Engine engine;
  Signal signal(engine);
  FakeWork work;
  engine.attach(work);
  EXPECT_FALSE(engine.progress());  // the next look is due in 16 turns
  for (int i = 1; i <= 3; ++i) {
    signal.raise();
    std::this_thread::sleep_for(25ms);  // more than two ticks of any kernel
    work.on_poll = [&] { EXPECT_EQ(signal.events, i); };
    EXPECT_TRUE(engine.progress());
    EXPECT_EQ(signal.events, i);
    work.on_poll = nullptr;
    EXPECT_FALSE(engine.progress());
  }
}

TEST(Engine, ALongTurnIsFollowedByALook) {
  Engine engine;
  FakeWork work;
  work.pending = 1'000;
  work.on_poll = [] { std::this_thread::sleep_for(25ms); };
  engine.attach(work);
  Signal signal(engine);
  EXPECT_TRUE(engine.progress());
  EXPECT_TRUE(engine.progress());
  signal.raise();
  EXPECT_TRUE(engine.progress());
  EXPECT_EQ(signal.events, 1);
}

// Each check is a system call, which a turn with completions omits. A tick may come in between.
TEST(Engine, ProgressLooksAtDescriptorsNowAndThenWhileThereIsWork) {
  Engine engine;
  FakeWork work;
  work.pending = 1'000'000;
  engine.attach(work);
  Signal signal(engine);
  EXPECT_TRUE(engine.progress());
  int whole = 0;
  for (int i = 1; i <= 100; ++i) {
    EXPECT_TRUE(engine.progress());  // the turn after events looks, and finds none
    signal.raise();
    int turns = 0;
    for (; signal.events < i && turns < 100; ++turns) EXPECT_TRUE(engine.progress());
    EXPECT_LE(turns, 16);
    whole += turns == 16 ? 1 : 0;
  }
  EXPECT_GT(whole, 50);
}

TEST(Engine, ItsDescriptorIsReadableWhileAnEventWaits) {
  Engine engine;
  Signal signal(engine);
  EXPECT_FALSE(is_readable(engine.fd(), 0));
  signal.raise();
  EXPECT_TRUE(is_readable(engine.fd(), 0));
  EXPECT_TRUE(engine.progress());
  EXPECT_FALSE(is_readable(engine.fd(), 0));
  engine.notify();
  EXPECT_TRUE(is_readable(engine.fd(), 0));
}

TEST(Engine, ItsDescriptorNestsInAnotherEpoll) {
  Engine inner;
  Signal signal(inner);
  core::Fd outer(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(outer.get(), EPOLL_CTL_ADD, inner.fd(), &event), 0);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(::epoll_wait(outer.get(), &event, 1, 0), 0);
    inner.arm();
    signal.raise();
    EXPECT_EQ(::epoll_wait(outer.get(), &event, 1, 0), 1);
    inner.disarm();
    EXPECT_TRUE(inner.progress());
    EXPECT_EQ(signal.events, i);
  }
}

TEST(Engine, ArmTellsHowLongTheCallerMaySleep) {
  Engine engine;
  EXPECT_EQ(engine.arm(), Duration::max());
  engine.disarm();
  FakeWork patient;
  FakeWork hasty;
  hasty.sleep = 2ms;
  engine.attach(patient);
  engine.activate(hasty);
  EXPECT_EQ(engine.arm(), Duration(2ms));
  engine.disarm();
  EXPECT_EQ(patient.calls, "ad");
  EXPECT_EQ(hasty.calls, "ad");
}

// After turns without work the engine checks descriptors only now and then.
TEST(Engine, TheTurnAfterDisarmLooksAtDescriptors) {
  Engine engine;
  Signal signal(engine);
  for (int turns = 0; turns < 20; ++turns) {
    engine.progress();
    engine.arm();
    signal.raise();
    engine.disarm();
    EXPECT_TRUE(engine.progress());
  }
  EXPECT_EQ(signal.events, 20);
}

TEST(Engine, WhatBecomesActiveWhileItIsArmedWakesTheCaller) {
  Engine engine;
  FakeWork work;
  engine.arm();
  EXPECT_FALSE(is_readable(engine.fd(), 0));
  engine.activate(work);
  EXPECT_TRUE(is_readable(engine.fd(), 0));
  engine.disarm();
  EXPECT_TRUE(engine.progress());
  // A sleep of the engine's own needs no wake-up.
  FakeWork other;
  work.on_arm = [&] { engine.activate(other); };
  EXPECT_FALSE(engine.run_once(Clock::now()));
  EXPECT_FALSE(is_readable(engine.fd(), 0));
}

}  // namespace
}  // namespace offload::progress
