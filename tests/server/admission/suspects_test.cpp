#include "apps/server/admission/suspects.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/channel/channel_fixture.hpp"
#include "tests/server/fixtures/request_path_fixture.hpp"

namespace offload::server {
namespace {

using support::Bytes;
using support::copy_of;
using support::random_bytes;

constexpr std::uint32_t kDepth = 16;
constexpr std::uint32_t kLongest = 3000;
constexpr core::RunTime kTaken{std::chrono::hours(1)};

class SuspectsTest : public testing::Test {
 protected:
  /// A client by its number: nothing of it is used.
  static Client* client(std::size_t number) {
    static char somewhere[100];
    return reinterpret_cast<Client*>(somewhere + number);
  }
  void post(std::size_t length) {
    messages_.push_back(random_bytes(length, static_cast<std::uint32_t>(messages_.size())));
    ASSERT_TRUE(requester_
                    .post(messages_.back(), client(messages_.size() - 1),
                          core::RunTime(core::seconds(static_cast<int>(messages_.size()))))
                    .ok());
  }
  void take(std::uint32_t losses = 1) { suspects_.take(requester_, memory_, losses, kTaken); }
  /// Expects that the next one is message `number`, and removes it.
  void expect_next(std::size_t number, std::uint32_t losses = 1) {
    ASSERT_FALSE(suspects_.empty()) << number;
    const Suspects::Request& next = suspects_.front();
    EXPECT_EQ(next.client, client(number));
    EXPECT_EQ(next.age, kTaken - core::RunTime(core::seconds(static_cast<int>(number + 1))));
    EXPECT_EQ(next.losses, losses);
    EXPECT_EQ(copy_of(next.payload), messages_[number]) << number;
    suspects_.pop_front();
  }

  std::shared_ptr<channel::test::Ends> memory_ =
      std::make_shared<channel::test::Ends>(kDepth, kLongest);
  channel::Requester& requester_ = memory_->server.requester;
  std::vector<Bytes> messages_;
  Suspects suspects_;
};

// Short ones that share a slot, in packets and as plain bytes; alone in packets; long ones.
TEST_F(SuspectsTest, TakesAllInTheirOrder) {
  for (const std::size_t length : {3U, 0U, 7U}) post(length);
  requester_.flush();
  for (std::size_t i = 0; i < 30; ++i) post(20 * i);
  requester_.flush();
  post(300);
  requester_.flush();
  for (const std::size_t length : {1024U, 1025U, kLongest}) post(length);
  requester_.flush();
  take();
  for (std::size_t i = 0; i < messages_.size(); ++i) expect_next(i);
  EXPECT_TRUE(suspects_.empty());
  requester_.for_each_pending(
      [](channel::RequestTask& request) { EXPECT_EQ(request.user_data, nullptr); });
}

TEST_F(SuspectsTest, OnlyWhatHasNoResponse) {
  for (const std::size_t length : {10U, 2000U, 20U}) {
    post(length);
    requester_.flush();
  }
  ASSERT_EQ(memory_->serve(0), kernels::Outcome::answered);
  ASSERT_TRUE(memory_->server.take().has_value());
  take();
  expect_next(1);
  expect_next(2);
  EXPECT_TRUE(suspects_.empty());
}

TEST_F(SuspectsTest, NotWhatWasGivenUp) {
  for (int i = 0; i < 4; ++i) post(10);
  requester_.flush();
  std::size_t number = 0;
  requester_.for_each_pending([&](channel::RequestTask& request) {
    if (number++ % 2 == 0) request.user_data = nullptr;
  });
  take();
  expect_next(1);
  expect_next(3);
  EXPECT_TRUE(suspects_.empty());
  take();
  EXPECT_TRUE(suspects_.empty());
}

TEST_F(SuspectsTest, ThoseFromTheChannelAreInFront) {
  post(10);
  post(20);
  requester_.flush();
  take();
  post(30);
  requester_.flush();
  std::size_t given_up = 0;
  requester_.for_each_pending(
      [&](channel::RequestTask& request) { given_up += request.user_data == nullptr ? 1U : 0U; });
  EXPECT_EQ(given_up, 2U);
  take(3);
  expect_next(2, 3);
  expect_next(0);
  expect_next(1);
}

TEST_F(SuspectsTest, LongOnesKeepTheMemoryInWhichTheyLie) {
  const std::weak_ptr<const void> memory = memory_;
  post(kLongest);
  requester_.flush();
  take();
  memory_.reset();
  EXPECT_FALSE(memory.expired());
  EXPECT_EQ(copy_of(suspects_.front().payload), messages_[0]);
  suspects_.pop_front();
  EXPECT_TRUE(memory.expired());
}

TEST_F(SuspectsTest, ThoseOfOneClientAreRemoved) {
  for (int i = 0; i < 3; ++i) post(10);
  requester_.flush();
  take();
  suspects_.remove_if([](const Suspects::Request& request) { return request.client == client(1); });
  expect_next(0);
  expect_next(2);
  EXPECT_TRUE(suspects_.empty());
}

// The requests of one client stay in order: those in the channel are older than the rest.
TEST_F(SuspectsTest, ThoseThatMoveComeInFront) {
  Suspects held;
  const auto is_odd = [](const Suspects::Request& request) {
    return request.client == client(1) || request.client == client(3) ||
           request.client == client(5);
  };
  for (int i = 0; i < 4; ++i) post(10);
  requester_.flush();
  take();
  suspects_.move_if(held, is_odd);
  for (int i = 0; i < 2; ++i) post(10);
  requester_.flush();
  take();
  suspects_.move_if(held, is_odd);
  for (const std::size_t number : {4U, 0U, 2U}) expect_next(number);
  EXPECT_TRUE(suspects_.empty());
  std::swap(held, suspects_);
  for (const std::size_t number : {5U, 1U, 3U}) expect_next(number);
  EXPECT_TRUE(suspects_.empty());
}

class SuspectsOfPath : public test::RequestPathFixture {
 protected:
  static constexpr auto kTimeout = std::chrono::milliseconds(50);

  void wait() {
    std::this_thread::sleep_for(2 * kTimeout);
    engine_.note_wait(2 * kTimeout);
    turn();
  }
  /// Loses the worker; another one takes its place.
  void lose() {
    EXPECT_EQ(path_->note_loss(nullptr, /*blame=*/true), nullptr);
    (void)worker_->serve_all();  // what is in the channel was given up
    turn();
  }
};

// Otherwise requests behind slow ones would be refused although they are harmless.
TEST_F(SuspectsOfPath, AreRefusedOnceTheyWereWithWorkersForTooLong) {
  open(4);
  Peer& peer = connect();
  for (const char* text : {"1", "2"}) test::send_request(peer.socket, support::bytes_of(text));
  turn();
  lose();
  wait();
  EXPECT_TRUE(path_->retry(false));
  path_->refuse_overdue(kTimeout);
  EXPECT_EQ(next(peer), std::nullopt);  // without a worker the time does not count
  wait();
  path_->refuse_overdue(kTimeout);
  EXPECT_EQ(next(peer), test::error(protocol::Refusal::request_timed_out));
  EXPECT_EQ(next(peer), std::nullopt);
  EXPECT_TRUE(path_->suspects() != RetryCoordinator::Suspects::none);
}

TEST_F(SuspectsOfPath, TheirTimeWithTheLostWorkerCounts) {
  open(4);
  Peer& peer = connect();
  test::send_request(peer.socket, support::bytes_of("1"));
  turn();
  wait();
  lose();
  EXPECT_TRUE(path_->retry(false));
  path_->refuse_overdue(kTimeout);
  EXPECT_EQ(next(peer), test::error(protocol::Refusal::request_timed_out));
}

}  // namespace
}  // namespace offload::server
