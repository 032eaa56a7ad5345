#include "progress/usage_check.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "core/log.hpp"
#include "progress/engine.hpp"
#include "tests/progress/engine_fixture.hpp"

namespace offload::progress {
namespace {

using namespace std::chrono_literals;

// ---- By itself

TEST(UsageCheck, CallsOfOneThreadNest) {
  UsageCheck check;
  const UsageCheck::Turn turn(check, "turn");
  const UsageCheck::Call outer(check, "outer");
  { const UsageCheck::Call inner(check, "inner"); }
  // The end of the inner call is not the end of the thread's stay.
  const UsageCheck::Call again(check, "again");
}

TEST(UsageCheck, OneThreadAfterAnotherMayEnter) {
  UsageCheck check;
  for (int i = 0; i < 3; ++i) {
    std::thread([&] { const UsageCheck::Turn turn(check, "turn"); }).join();
    const UsageCheck::Turn turn(check, "turn");
  }
}

// ---- In an engine: a misuse ends builds with assertions

class EngineUsageDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!kChecksUsage) GTEST_SKIP() << "this build does not check";
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    core::start_log("test", "info");
  }
};

TEST_F(EngineUsageDeathTest, ATurnInsideATurn) {
  Engine engine;
  FakeWork work;
  engine.attach(work);
  work.on_poll = [&] { engine.progress(); };
  EXPECT_DEATH(engine.progress(), "progress was called from inside a callback");
  EXPECT_DEATH(engine.run_once(in(1ms)), "progress was called from inside a callback");
  work.on_poll = [&] { engine.run_once(in(1ms)); };
  EXPECT_DEATH(engine.progress(), "run_once was called from inside a callback");
}

TEST_F(EngineUsageDeathTest, ASecondThreadInsideIt) {
  Engine engine;
  FakeWork work;
  FakeWork other;
  engine.attach(work);
  work.on_poll = [&] { std::thread([&] { engine.activate(other); }).join(); };
  EXPECT_DEATH(engine.progress(), "activate was called while another thread was inside");
  work.on_poll = [&] { std::thread([&] { engine.progress(); }).join(); };
  EXPECT_DEATH(engine.progress(), "progress was called while another thread was inside");
}

TEST(EngineUsage, MayBeHandedToAnotherThread) {
  Engine engine;
  FakeWork work;
  engine.attach(work);
  engine.progress();
  std::thread([&] { engine.progress(); }).join();
  engine.progress();
  EXPECT_EQ(work.calls, "ppp");
}

TEST_F(EngineUsageDeathTest, TheEndOfANestedCallDoesNotLetOthersIn) {
  UsageCheck check;
  const UsageCheck::Call outer(check, "outer");
  { const UsageCheck::Call inner(check, "inner"); }
  EXPECT_DEATH(std::thread([&] { const UsageCheck::Call other(check, "other"); }).join(),
               "other was called while another thread was inside");
}

}  // namespace
}  // namespace offload::progress
