#include "rdma/verbs/completion_loop.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "progress/engine.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::thrown_by;
using test::fake;

struct Recorder final : CompletionHandler {
  void on_completion(std::uint32_t number, const ibv_wc&) override {
    numbers.push_back(number);
    if (removed) removed();
  }
  void on_queue_failed() noexcept override { ++failures; }

  std::vector<std::uint32_t> numbers;
  int failures = 0;
  std::function<void()> removed;
};

class CompletionLoopTest : public FakeDeviceTest {
 protected:
  static constexpr std::uint32_t kDepth = 8;

  static void complete(std::uint32_t tag, std::uint32_t number) {
    ibv_wc completion{};
    completion.wr_id = std::uint64_t{tag} << 32 | number;
    fake().completions.push_back(completion);
  }
  /// Returns the number of poll_cq calls so far.
  static std::ptrdiff_t polls() {
    return std::count(fake().calls.begin(), fake().calls.end(), "poll_cq");
  }

  DeviceContext device_{"fake0"};
  progress::Engine engine_;
  CompletionLoop loop_{device_, engine_, kDepth};
  Recorder first_;
  Recorder second_;
};

TEST_F(CompletionLoopTest, ACompletionGoesToTheHandlerOfItsTag) {
  const std::uint32_t first = loop_.add(first_, 4);
  const std::uint32_t second = loop_.add(second_, 4);
  loop_.on_posted(3);
  complete(second, 7);
  complete(first, 8);
  complete(second, 9);
  engine_.progress();
  EXPECT_EQ(first_.numbers, std::vector<std::uint32_t>{8});
  EXPECT_EQ(second_.numbers, (std::vector<std::uint32_t>{7, 9}));
  loop_.remove(first, 4, 0);
  loop_.remove(second, 4, 3);
}

TEST_F(CompletionLoopTest, ALateCompletionOfAFormerHandlerIsDropped) {
  const std::uint32_t former = loop_.add(first_, 4);
  loop_.on_posted(1);
  loop_.remove(former, 4, 1);
  const std::uint32_t tag = loop_.add(second_, 4);
  EXPECT_NE(tag, former);
  complete(former, 1);
  complete(tag + 1, 2);  // of no handler
  complete(~0U, 3);
  loop_.on_posted(1);
  loop_.drain();
  EXPECT_TRUE(first_.numbers.empty());
  EXPECT_TRUE(second_.numbers.empty());
  loop_.remove(tag, 4, 1);
}

// An owner may take completions by queue() on another thread then.
TEST_F(CompletionLoopTest, IsDrainedWhileWorkIsOutstandingOnly) {
  const auto before = polls();
  loop_.drain();
  EXPECT_EQ(polls(), before);
  const std::uint32_t tag = loop_.add(first_, 4);
  loop_.on_posted(1);
  loop_.drain();
  EXPECT_EQ(polls(), before + 1);
  loop_.remove(tag, 4, 1);
}

TEST_F(CompletionLoopTest, ItPollsWhileWorkIsOutstandingOnly) {
  const std::uint32_t tag = loop_.add(first_, 4);
  engine_.progress();
  EXPECT_EQ(polls(), 0);
  loop_.on_posted(1);
  engine_.progress();
  engine_.progress();
  EXPECT_EQ(polls(), 2);
  loop_.on_completed(1);
  engine_.progress();  // finds that nothing is outstanding
  const auto before = polls();
  engine_.progress();
  EXPECT_EQ(polls(), before);
  loop_.remove(tag, 4, 0);
}

TEST_F(CompletionLoopTest, ItPollsForNoHandlerThatIsRemoved) {
  const std::uint32_t tag = loop_.add(first_, 4);
  loop_.on_posted(2);
  engine_.progress();
  loop_.remove(tag, 4, 2);
  engine_.progress();  // finds that nothing is outstanding
  const auto before = polls();
  engine_.progress();
  EXPECT_EQ(polls(), before);
}

TEST_F(CompletionLoopTest, AHandlerMayBeRemovedWhileAnotherIsCalled) {
  const std::uint32_t first = loop_.add(first_, 4);
  const std::uint32_t second = loop_.add(second_, 4);
  loop_.on_posted(2);
  first_.removed = [&] { loop_.remove(second, 4, 1); };
  complete(first, 1);
  complete(second, 2);
  loop_.drain();
  EXPECT_EQ(first_.numbers.size(), 1U);
  EXPECT_TRUE(second_.numbers.empty());
  loop_.remove(first, 4, 1);
}

TEST_F(CompletionLoopTest, ItsEntriesAreSharedOut) {
  const std::uint32_t first = loop_.add(first_, 5);
  EXPECT_EQ(thrown_by([&] { loop_.add(second_, 4); }).code(), ErrorCode::full);
  loop_.remove(first, 5, 0);
  const std::uint32_t second = loop_.add(second_, kDepth);
  loop_.remove(second, kDepth, 0);
}

TEST_F(CompletionLoopTest, AFailureIsReportedOnceToEachHandler) {
  const std::uint32_t first = loop_.add(first_, 4);
  const std::uint32_t second = loop_.add(second_, 2);
  fake().fail_call = "poll_cq";
  loop_.on_posted(1);
  for (int i = 0; i < 3; ++i) engine_.progress();
  loop_.drain();
  EXPECT_EQ(first_.failures, 1);
  EXPECT_EQ(second_.failures, 1);
  Recorder late;
  EXPECT_EQ(thrown_by([&] { loop_.add(late, 1); }).code(), ErrorCode::driver);
  loop_.remove(first, 4, 1);
  loop_.remove(second, 2, 0);
}

TEST_F(CompletionLoopTest, SleepsArmedOncePerEvent) {
  const std::uint32_t tag = loop_.add(first_, 4);
  loop_.on_posted(1);
  expect_armed_once_per_event(engine_);
  loop_.remove(tag, 4, 1);
}

TEST_F(CompletionLoopTest, ADrainIsBoundedByTheDepthOfTheQueue) {
  const std::uint32_t tag = loop_.add(first_, 4);
  loop_.on_posted(1);
  for (std::uint32_t i = 0; i < 100; ++i) complete(tag, i);
  loop_.drain();
  EXPECT_EQ(first_.numbers.size(), CompletionLoop::kBatch);
  loop_.drain();
  EXPECT_EQ(first_.numbers.size(), 100U);
  loop_.remove(tag, 4, 1);
}

TEST_F(CompletionLoopTest, ATagIsOfOneHandlerForManyGenerations) {
  std::uint32_t former = loop_.add(first_, 4);
  for (int i = 0; i < 4000; ++i) {
    loop_.remove(former, 4, 0);
    const std::uint32_t tag = loop_.add(first_, 4);
    ASSERT_NE(tag, former);
    ASSERT_EQ(tag & 0xf'ffffU, former & 0xf'ffffU) << "the slot is used again";
    former = tag;
  }
  complete(former, 7);
  loop_.on_posted(1);
  loop_.drain();
  EXPECT_EQ(first_.numbers, std::vector<std::uint32_t>{7});
  loop_.remove(former, 4, 1);
}

TEST(CompletionLoopEnd, SaysWhoStillUsesIt) {
  test::reset_fake();
  const support::LogCapture log;
  const DeviceContext device("fake0");
  progress::Engine engine;
  Recorder one;
  Recorder other;
  {
    CompletionLoop loop(device, engine, 8);
    loop.add(one, 2);
    loop.remove(loop.add(other, 2), 2, 0);
  }
  EXPECT_TRUE(log.has("a completion queue is destroyed while 1 connections use it")) << log.text();
  {
    CompletionLoop loop(device, engine, 8);
    EXPECT_FALSE(engine.progress()) << "the former one is not polled";
  }
  EXPECT_EQ(log.text().find("while 0"), std::string::npos);
}

}  // namespace
}  // namespace offload::rdma
