#include "apps/worker/watchdog.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "channel/channel_memory.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::worker {
namespace {

using namespace std::chrono_literals;

/// Two channels, and a watchdog that checks them at times that the test chooses.
class WatchdogTest : public testing::Test {
 protected:
  /// Returns the number that it counts `after` the start, with these heartbeats.
  std::size_t look(core::Duration after, std::vector<std::uint64_t> heartbeats = {0, 0}) {
    return watchdog_.look(start_ + after, heartbeats);
  }
  void post(std::size_t channel, std::size_t length = 20) {
    ASSERT_TRUE(channels_[channel].server.post(support::random_bytes(length, 1)));
  }
  /// Passes one message through the worker's and the server's slot, from start to end.
  void pass_one(std::size_t channel) {
    const auto sequence = channels_[channel].server.requester.slots().posted();
    post(channel);
    ASSERT_EQ(channels_[channel].serve(sequence), kernels::Outcome::answered);
    take(channel);
  }
  void take(std::size_t channel) {
    ASSERT_TRUE(channels_[channel].server.take().has_value());
    channels_[channel].server.requester.flush();
  }
  /// Resets the count to its state when the server is on another machine.
  void forget_count(std::size_t channel) {
    auto& header = channels_[channel].memory.endpoint().view.request_header();
    __atomic_store_n(&header.consumed, 0, __ATOMIC_RELAXED);
  }

  support::LogCapture log_;
  std::deque<channel::test::Ends> channels_ = make_channels();
  core::RunTime start_ = core::RunTime{} + 1h;
  Watchdog watchdog_{{channels_[0].worker.view(), channels_[1].worker.view()}, 2s, start_};

 private:
  static std::deque<channel::test::Ends> make_channels() {
    std::deque<channel::test::Ends> channels;
    channels.emplace_back(4, 600);
    channels.emplace_back(4, 600);
    return channels;
  }
};

TEST_F(WatchdogTest, AnIdleChannelIsNotStuckHoweverLong) {
  for (int second = 0; second < 100; ++second) {
    EXPECT_EQ(look(std::chrono::seconds(second)), 0U);
  }
  EXPECT_EQ(log_.text(), "");
}

TEST_F(WatchdogTest, ARequestThatStaysUnansweredIsNamed) {
  for (int i = 0; i < 6; ++i) pass_one(1);
  EXPECT_EQ(look(9750ms), 0U);
  post(1);
  EXPECT_EQ(look(10s), 0U);
  EXPECT_EQ(look(11s), 0U);
  EXPECT_EQ(log_.text(), "");
  EXPECT_EQ(look(12s), 1U);
  EXPECT_TRUE(
      log_.has("error: channel 1 is stuck: its slot 2 (message 6) has been unanswered for "
               "2."))
      << log_.text();
}

// A worker that posts its responses itself does not know how many the server has taken.
TEST_F(WatchdogTest, ARequestIsNamedWithoutTheServersCount) {
  for (int i = 0; i < 11; ++i) {
    pass_one(1);
    forget_count(1);
    EXPECT_EQ(look(std::chrono::seconds(i)), 0U);
  }
  post(1);
  forget_count(1);
  EXPECT_EQ(look(11s), 0U);
  EXPECT_EQ(look(13s), 1U);
  EXPECT_TRUE(log_.has("channel 1 is stuck: its slot 3 (message 11)")) << log_.text();
}

// Slots are answered in any order; a response behind a stuck one may be there and not be taken.
TEST_F(WatchdogTest, TheOldestOfTheUnansweredIsNamed) {
  for (int i = 0; i < 6; ++i) pass_one(0);
  for (int i = 0; i < 4; ++i) post(0);
  ASSERT_EQ(channels_[0].serve(6), kernels::Outcome::answered);
  ASSERT_EQ(channels_[0].serve(8), kernels::Outcome::answered);
  EXPECT_EQ(look(1s), 0U);
  EXPECT_EQ(look(3s), 1U);
  EXPECT_TRUE(log_.has("channel 0 is stuck: its slot 3 (message 7)")) << log_.text();
}

TEST_F(WatchdogTest, SaysItOnce) {
  post(0);
  for (int second = 0; second < 10; ++second) look(std::chrono::seconds(second));
  const auto text = log_.text();
  EXPECT_EQ(text.find("is stuck"), text.rfind("is stuck")) << text;
}

TEST_F(WatchdogTest, TellsWhenTheWorkerWasLastAlive) {
  post(0);
  EXPECT_EQ(look(0s, {1, 0}), 0U);
  EXPECT_EQ(look(1s, {2, 0}), 0U);
  EXPECT_EQ(look(4s, {2, 0}), 1U);
  EXPECT_TRUE(log_.has("last sign of life 3.0 s ago")) << log_.text();
}

TEST_F(WatchdogTest, AChannelThatGoesOnIsSaidToDoSo) {
  post(0);
  look(0s);
  EXPECT_EQ(look(3s), 1U);
  ASSERT_EQ(channels_[0].serve(0), kernels::Outcome::answered);
  log_.clear();
  EXPECT_EQ(look(4s), 0U);
  EXPECT_EQ(log_.text(), "info: channel 0 is working again\n");
  log_.clear();
  take(0);
  EXPECT_EQ(look(100s), 0U);
  EXPECT_EQ(log_.text(), "");
}

TEST_F(WatchdogTest, CanBeStuckAgain) {
  post(0);
  look(0s);
  EXPECT_EQ(look(3s), 1U);
  ASSERT_EQ(channels_[0].serve(0), kernels::Outcome::answered);
  take(0);
  EXPECT_EQ(look(4s), 0U);
  post(0);
  look(5s);
  log_.clear();
  EXPECT_EQ(look(8s), 1U);
  EXPECT_TRUE(log_.has("channel 0 is stuck: its slot 1 (message 1)")) << log_.text();
}

// Each message is answered in time: a channel that is never empty is not stuck for that reason.
TEST_F(WatchdogTest, ABusyChannelIsNotStuck) {
  post(0);
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(look(i * 1500ms), 0U) << i;
    post(0);
    ASSERT_EQ(channels_[0].serve(i), kernels::Outcome::answered);
    take(0);
  }
}

// Then the slot has the server's flag.
TEST_F(WatchdogTest, AnAnswerThatTheServerDoesNotTakeIsNoFaultOfTheWorker) {
  post(0);
  ASSERT_EQ(channels_[0].serve(0), kernels::Outcome::answered);
  look(0s);
  EXPECT_EQ(look(100s), 0U);
}

TEST_F(WatchdogTest, LongMessagesAreWatchedToo) {
  post(1, 600);
  look(0s);
  EXPECT_EQ(look(3s), 1U);
}

// Another worker now has the requests that it has not answered; its other answers are not taken.
TEST_F(WatchdogTest, AChannelThatWasMovedToAnotherWorkerIsNotStuckOnceItHasAnswered) {
  channel::ChannelMemory next(0, 4, 600, -1);
  post(0);
  ASSERT_EQ(channels_[0].serve(0), kernels::Outcome::answered);
  look(0s);
  channels_[0].server.requester.move_to(next.endpoint(), channel::Wakeup::doorbell);
  post(0);  // into the next memory
  EXPECT_EQ(look(100s), 0U);
}

TEST_F(WatchdogTest, SaysWhoseChannelItIs) {
  Watchdog watchdog({channels_[0].worker.view()}, 2s, start_, "0000:01:00.0: ");
  post(0);
  watchdog.look(start_, {0});
  EXPECT_EQ(watchdog.look(start_ + 3s, {0}), 1U);
  EXPECT_TRUE(log_.has("error: 0000:01:00.0: channel 0 is stuck")) << log_.text();
}

TEST_F(WatchdogTest, CountsEveryStuckChannel) {
  post(0);
  post(1);
  look(0s);
  EXPECT_EQ(look(3s), 2U);
  EXPECT_TRUE(log_.has("channel 0 is stuck"));
  EXPECT_TRUE(log_.has("channel 1 is stuck"));
}

}  // namespace
}  // namespace offload::worker
