#include "apps/server/slow_requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <thread>

#include "tests/server/fixtures/request_path_fixture.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::server {
namespace {

using protocol::Refusal;
using support::bytes_of;
using support::random_bytes;
using test::error;
using test::response;
using test::send_request;

constexpr auto kLate = std::chrono::milliseconds(200);  // more than a busy machine adds
constexpr core::Duration kAny = std::chrono::nanoseconds(1);

class SlowRequestsTest : public test::RequestPathFixture {
 protected:
  /// Lets the time of a slow request go by.
  void be_late() {
    std::this_thread::sleep_for(kLate);
    engine_.note_wait(kLate);
    turn();
  }
  [[nodiscard]] std::uint64_t count() const { return metrics_.slow_requests.value(); }
  /// Returns the milliseconds of the line that has `text`: its total, and its parts; none without
  /// such a line.
  [[nodiscard]] std::vector<double> times(const std::string& text) const {
    std::vector<double> times;
    const std::string all = log_.text();
    const std::size_t at = all.find(text);
    if (at == std::string::npos) return times;
    const std::size_t begin = all.rfind('\n', at) + 1;
    const std::string line = all.substr(begin, all.find('\n', at) - begin);
    const std::regex number(R"((\d+\.\d+)\s+ms)");
    for (std::sregex_iterator i(line.begin(), line.end(), number), end; i != end; ++i) {
      times.push_back(std::stod((*i)[1]));
    }
    return times;
  }

  /// Returns the exemplars, each of which is in its bucket.
  [[nodiscard]] std::vector<SlowRequest> last_slow() const {
    std::vector<SlowRequest> all;
    for (std::size_t bucket = 0; bucket < metrics_.last_slow.size(); ++bucket) {
      for (const SlowRequest& kept : metrics_.last_slow[bucket].latest()) {
        EXPECT_EQ(telemetry::DurationHistogram::bucket_of(kept.took), bucket);
        all.push_back(kept);
      }
    }
    return all;
  }
  [[nodiscard]] bool is_logged(const SlowRequest& kept) const {
    return log_.has("client " + std::to_string(kept.client) + ",") &&
           log_.has(": slow request " + std::to_string(kept.number) + ", of ");
  }

  support::LogCapture log_;
};

TEST_F(SlowRequestsTest, OnlyRequestsThatTakeAsLongAreReported) {
  open(4, kLate);
  Peer& peer = connect();
  send_request(peer.socket, bytes_of("in time"));
  turn();
  ASSERT_TRUE(worker_->serve());
  ASSERT_EQ(next(peer), response(bytes_of("emit ni")));
  EXPECT_EQ(count(), 0U);
  send_request(peer.socket, bytes_of("late"));
  turn();
  be_late();
  ASSERT_TRUE(worker_->serve());
  ASSERT_EQ(next(peer), response(bytes_of("etal")));
  EXPECT_EQ(count(), 1U);
  EXPECT_FALSE(log_.has("7 bytes")) << log_.text();
  const auto parts = times("slow request 1, of 4 bytes for reverse, took");
  ASSERT_EQ(parts.size(), 4U) << log_.text();
  EXPECT_TRUE(log_.has("until its response of 4 bytes was sent")) << log_.text();
  EXPECT_GE(parts[0], 200);
  EXPECT_NEAR(parts[0], parts[1] + parts[2] + parts[3], 0.003);
  EXPECT_GE(parts[2], 200);  // with the worker
}

TEST_F(SlowRequestsTest, WithoutALimitThereAreNone) {
  open(4);
  Peer& peer = connect();
  send_request(peer.socket, bytes_of("late"));
  turn();
  be_late();
  ASSERT_TRUE(worker_->serve());
  ASSERT_EQ(next(peer), response(bytes_of("etal")));
  EXPECT_EQ(count(), 0U);
  EXPECT_EQ(log_.text(), "");
}

TEST_F(SlowRequestsTest, ARequestThatWaitsForAWorkerIsReportedWhenItIsAnswered) {
  open(4, kLate);
  Peer& peer = connect();
  path_->set_open(false);
  send_request(peer.socket, bytes_of("early"));
  turn();
  be_late();
  EXPECT_EQ(count(), 0U);
  path_->set_open(true);
  turn();
  ASSERT_TRUE(worker_->serve());
  ASSERT_EQ(next(peer), response(bytes_of("ylrae")));
  EXPECT_EQ(count(), 1U);
  const auto parts = times("of 5 bytes for reverse");
  ASSERT_EQ(parts.size(), 4U) << log_.text();
  EXPECT_GE(parts[1], 200);  // until it was in the channel
  EXPECT_NEAR(parts[0], parts[1] + parts[2] + parts[3], 0.003);

  // The time of that wait does not count for the next one.
  send_request(peer.socket, bytes_of("next"));
  turn();
  ASSERT_TRUE(worker_->serve());
  ASSERT_EQ(next(peer), response(bytes_of("txen")));
  EXPECT_EQ(count(), 1U) << log_.text();
}

// A client that has hung up is read without a wait.
TEST_F(SlowRequestsTest, AWaitBeforeTheLastRequestDoesNotCount) {
  open(4, kLate);
  Peer& peer = connect();
  be_late();
  send_request(peer.socket, bytes_of("last"));
  ASSERT_EQ(::shutdown(peer.socket.get(), SHUT_WR), 0);
  turn();
  ASSERT_TRUE(worker_->serve());
  ASSERT_EQ(next(peer), response(bytes_of("tsal")));
  EXPECT_EQ(count(), 0U) << log_.text();
}

// Responses of one batch have one task, but separate times and lengths.
TEST_F(SlowRequestsTest, EachRequestOfABatchIsReported) {
  open(64, kAny);
  Peer& peer = connect();
  for (std::uint32_t i = 1; i <= 8; ++i) send_request(peer.socket, random_bytes(10 * i, i));
  turn();
  EXPECT_GT(worker_->serve_all(), 0);
  for (std::uint32_t i = 1; i <= 8; ++i) ASSERT_TRUE(next(peer));
  EXPECT_EQ(count(), 8U);
  for (int i = 1; i <= 8; ++i) {
    const std::string bytes = std::to_string(10 * i) + " bytes";
    const std::string line =
        "slow request " + std::to_string(i) + ", of " + bytes + " for reverse, took ";
    const std::size_t at = log_.text().find(line);
    ASSERT_NE(at, std::string::npos) << bytes << "\n" << log_.text();
    const std::string rest = log_.text().substr(at + line.size());
    EXPECT_NE(rest.substr(0, rest.find('\n')).find("response of " + bytes), std::string::npos);
  }
}

TEST_F(SlowRequestsTest, LinesAreLimitedAndRequestsAreCounted) {
  open(64, kAny);
  Peer& peer = connect();
  constexpr std::uint64_t kRequests = 3 * SlowRequests::kMostLines;
  for (std::uint64_t i = 0; i < kRequests; ++i) {
    send_request(peer.socket, bytes_of("x"));
    turn();
    ASSERT_TRUE(worker_->serve());
    ASSERT_TRUE(next(peer));
  }
  EXPECT_EQ(count(), kRequests);
  const std::string text = log_.text();
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_GE(lines, SlowRequests::kMostLines);
  EXPECT_LT(static_cast<std::uint64_t>(lines), kRequests);
  for (const SlowRequest& kept : last_slow()) EXPECT_TRUE(is_logged(kept)) << kept.number;
}

// In its bucket, with the numbers and the time of its line.
TEST_F(SlowRequestsTest, TheLastOneOfABucketIsKept) {
  open(4, kLate);
  connect();
  Peer& peer = connect();
  EXPECT_TRUE(last_slow().empty());
  for (const std::uint64_t number : {1U, 2U}) {
    send_request(peer.socket, bytes_of("late"));
    turn();
    be_late();
    ASSERT_TRUE(worker_->serve());
    ASSERT_EQ(next(peer), response(bytes_of("etal")));
    const auto kept = last_slow();
    ASSERT_FALSE(kept.empty());
    const SlowRequest& last = *std::ranges::max_element(kept, {}, &SlowRequest::number);
    EXPECT_EQ(last.number, number);
    EXPECT_EQ(last.client, peer.client->admission().number);
    EXPECT_TRUE(is_logged(last)) << log_.text();
    const auto line = "slow request " + std::to_string(number) + ", of 4 bytes";
    EXPECT_NEAR(static_cast<double>(last.took) / 1e6, times(line).at(0), 0.001);
    const auto now = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch());
    EXPECT_NEAR(static_cast<double>(last.ended) / 1e9, static_cast<double>(now.count()) / 1e9, 60);
  }
}

TEST_F(SlowRequestsTest, AnErrorInsteadOfAResponseIsReported) {
  open(4, kLate);
  Peer& peer = connect();
  send_request(peer.socket, bytes_of("overdue"));
  turn();
  be_late();
  path_->refuse_overdue(kLate / 2);
  ASSERT_EQ(next(peer), error(Refusal::request_timed_out));
  auto parts = times("of 7 bytes for reverse");
  ASSERT_EQ(parts.size(), 3U) << log_.text();
  EXPECT_TRUE(log_.has("until its error request_timed_out")) << log_.text();
  EXPECT_GE(parts[2], 200);
  EXPECT_EQ(worker_->serve_all(), 1);  // its late answer is not reported a second time
  turn();
  EXPECT_EQ(count(), 1U);

  path_->set_open(false);
  send_request(peer.socket, bytes_of("nobody"));
  turn();
  be_late();
  path_->set_refusal(Refusal::worker_unavailable);
  ASSERT_EQ(next(peer), error(Refusal::worker_unavailable));
  parts = times("of 6 bytes for reverse");
  ASSERT_EQ(parts.size(), 3U) << log_.text();
  EXPECT_TRUE(log_.has("until its error worker_unavailable")) << log_.text();
  EXPECT_GE(parts[1], 200);
  EXPECT_EQ(count(), 2U);
}

TEST_F(SlowRequestsTest, AnErrorOfTheWorkerIsReportedAsOne) {
  open(4, kAny);
  Peer& peer = connect();
  send_request(peer.socket, bytes_of("request"));
  turn();
  worker_->fail();
  ASSERT_EQ(next(peer), error(Refusal::worker_failed));
  EXPECT_EQ(count(), 1U);
  EXPECT_TRUE(log_.has("slow request 1, of 7 bytes for reverse, took ")) << log_.text();
  EXPECT_TRUE(log_.has("until its error worker_failed")) << log_.text();
  EXPECT_FALSE(log_.has("until its response")) << log_.text();
}

TEST_F(SlowRequestsTest, AnErrorInTimeIsNotReported) {
  open(4, kLate);
  Peer& peer = connect();
  path_->set_refusal(Refusal::worker_unavailable);
  send_request(peer.socket, bytes_of("nobody"));
  ASSERT_EQ(next(peer), error(Refusal::worker_unavailable));
  EXPECT_EQ(count(), 0U) << log_.text();
}

// Each arrived once, whatever number of workers it was with. The second one is retried first, in
// the place that the first one had.
TEST_F(SlowRequestsTest, ARequestThatIsRetriedKeepsItsArrival) {
  open(4, kLate);
  Peer& paused = connect();
  Peer& peer = connect();
  send_request(paused.socket, bytes_of("first"));
  turn();
  be_late();
  send_request(peer.socket, bytes_of("second"));
  turn();
  paused.client->connection().set_paused(true);
  ASSERT_EQ(path_->note_loss(nullptr, /*blame=*/false), nullptr);
  channel::ChannelMemory next_memory(0, 4, kLongest, -1);
  test::Worker next_worker(next_memory);
  path_->requester().move_to(next_memory.endpoint(), channel::Wakeup::polling);
  const auto answered = [&](Peer& one, const char* answer) {
    return path_->retry(/*together=*/true) && next_worker.serve() &&
           next(one) == response(bytes_of(answer));
  };
  ASSERT_TRUE(answered(peer, "dnoces"));
  EXPECT_TRUE(times("of 6 bytes for reverse").empty()) << log_.text();
  paused.client->connection().set_paused(false);
  path_->hold_suspects();
  ASSERT_TRUE(answered(paused, "tsrif"));
  const auto parts = times("of 5 bytes for reverse");
  ASSERT_EQ(parts.size(), 4U) << log_.text();
  EXPECT_GE(parts[2], 200);
  path_->requester().close();
}

TEST_F(SlowRequestsTest, RequestsFromBeforeItIsSwitchedOnAreNotReported) {
  open(4);
  Peer& peer = connect();
  send_request(peer.socket, bytes_of("before"));
  turn();
  be_late();
  turn();
  path_->set_slow_request(kAny);
  ASSERT_TRUE(worker_->serve());
  ASSERT_EQ(next(peer), response(bytes_of("erofeb")));
  EXPECT_EQ(count(), 0U) << log_.text();
  send_request(peer.socket, bytes_of("after"));
  turn();
  ASSERT_TRUE(worker_->serve());
  ASSERT_EQ(next(peer), response(bytes_of("retfa")));
  EXPECT_EQ(count(), 1U);
  path_->set_slow_request({});
  send_request(peer.socket, bytes_of("off"));
  turn();
  ASSERT_TRUE(worker_->serve());
  ASSERT_EQ(next(peer), response(bytes_of("ffo")));
  EXPECT_EQ(count(), 1U);
}

}  // namespace
}  // namespace offload::server
