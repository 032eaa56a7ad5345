#include "rdma/verbs/completion_loop.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "tests/rdma_tasks/connection_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using core::Status;
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

// Tests with connections.
using SharedLoopTest = ConnectionTest;

TEST_F(SharedLoopTest, TheCompletionQueueTakesNoMoreThanItHasRoomFor) {
  connection_.start();
  Connection other({device_, domain_, registrar_, loop_}, small_queues(), "other");
  other.connect(engine_);
  EXPECT_EQ(thrown_by([&] { other.start(); }).code(), ErrorCode::full);
  connection_.stop();
  other.start();
  other.stop();
}

TEST_F(SharedLoopTest, AnEngineSleepsUntilTheChannelRings) {
  start_connected();
  EXPECT_EQ(engine_.arm(), core::Duration::max());
  engine_.disarm();
  EXPECT_EQ(fake().arms, 0);  // nothing is under way
  EXPECT_EQ(receive(), Status());
  turn();
  EXPECT_EQ(engine_.arm(), core::Duration::max());
  EXPECT_EQ(fake().arms, 1);
  fake().finish_receive(queue(), {});
  fake().ring();
  engine_.run_once(core::Clock::now() + std::chrono::seconds(10));
  engine_.disarm();
  turn();
  EXPECT_EQ(outcomes_.all, Lines{"ok"});
  EXPECT_EQ(receive(), Status());
  turn();
  engine_.arm();
  EXPECT_EQ(fake().arms, 2);  // armed again after the event
  engine_.disarm();
}

}  // namespace
}  // namespace offload::rdma
