#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <utility>

#include "tests/server/fixtures/request_path_fixture.hpp"

/// Checks when RequestPath reports the stages of a request.
namespace offload::server {
namespace {

using support::Bytes;
using support::bytes_of;
using support::random_bytes;
using support::reversed;
using test::response;
using test::send_all;
using test::send_request;

class RequestStagesTest : public test::RequestPathFixture {
 protected:
  static constexpr core::Duration kPause = std::chrono::milliseconds(5);

  /// Opens a channel of one slot, and answers `answered` requests.
  Peer& open_after(int answered) {
    open(1);
    Peer& peer = connect();
    for (int i = 0; i < answered; ++i) {
      send_request(peer.socket, bytes_of("x"));
      turn();
      EXPECT_TRUE(worker_->serve());
      EXPECT_EQ(next(peer), response(bytes_of("x")));
    }
    return peer;
  }

  /// Checks the only sample: the request's length, and that these stages took kPause. The other
  /// stages may have taken it, too, if the machine is busy.
  void expect_sample(std::uint64_t length, const std::set<std::string>& slow) {
    const auto samples = metrics_.samples.latest();
    ASSERT_EQ(samples.size(), 1U);
    EXPECT_EQ(samples[0].length, length);
    std::uint64_t begin = samples[0].began;
    for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
      const std::uint64_t end = samples[0].ends()[stage];
      EXPECT_GE(end, begin) << kStages[stage];
      const core::Duration took(end - std::exchange(begin, end));
      if (slow.count(kStages[stage]) != 0) {
        EXPECT_GE(took, kPause) << kStages[stage];
      }
    }
  }
  static void pause() { std::this_thread::sleep_for(kPause); }
};

TEST_F(RequestStagesTest, TheTimesOfOneOf64AreTaken) {
  open(4);
  Peer& peer = connect();
  for (int i = 0; i < 2 * 64; ++i) {
    EXPECT_EQ(metrics_.duration.sum() != 0, i >= 64) << i;
    send_request(peer.socket, bytes_of("x"));
    turn();
    ASSERT_TRUE(worker_->serve());
    EXPECT_EQ(next(peer), response(bytes_of("x")));
  }
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= telemetry::DurationHistogram::kBounds.size(); ++i) {
    count += metrics_.duration.count_at(i);
  }
  EXPECT_EQ(count, 2U);
  const auto samples = metrics_.samples.latest();
  ASSERT_EQ(samples.size(), 2U);
  for (const RequestSample& sample : samples) {
    EXPECT_EQ(sample.length, 1U);
    EXPECT_GT(sample.began, 0U);
  }
  EXPECT_GE(samples[1].began, samples[0].written);
  std::uint64_t sum = 0;
  for (const auto& stage : metrics_.stages) sum += stage.sum();
  EXPECT_EQ(metrics_.duration.sum(), sum);
}

TEST_F(RequestStagesTest, AFrameThatComesInPiecesAndAWorkerThatTakesItsTime) {
  Peer& peer = open_after(63);
  const auto frame = protocol::make_frame(protocol::MessageId::client_request, bytes_of("12"));
  send_all(peer.socket, std::span(frame).first(5));
  turn();
  pause();
  send_all(peer.socket, std::span(frame).subspan(5));
  turn();
  pause();
  ASSERT_TRUE(worker_->serve());
  EXPECT_EQ(next(peer), response(bytes_of("21")));
  expect_sample(2, {"receive", "worker"});
}

TEST_F(RequestStagesTest, AFullChannelIsTimeInTheQueue) {
  Peer& peer = open_after(62);
  const Bytes request = random_bytes(kLongest, 1);  // it takes a slot alone
  auto frames = protocol::make_frame(protocol::MessageId::client_request, request);
  const auto second = frames;
  frames.insert(frames.end(), second.begin(), second.end());
  send_all(peer.socket, frames);
  turn();
  EXPECT_EQ(posted(), 63U);
  pause();
  ASSERT_TRUE(worker_->serve());
  EXPECT_EQ(next(peer), response(reversed(request)));
  ASSERT_TRUE(worker_->serve());
  EXPECT_EQ(next(peer), response(reversed(request)));
  expect_sample(kLongest, {"queue"});
}

}  // namespace
}  // namespace offload::server
