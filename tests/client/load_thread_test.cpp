#include "apps/client/load_thread.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <thread>

#include "protocol/frame.hpp"

namespace offload::client {
namespace {

using namespace std::chrono_literals;
using protocol::MessageId;
using Bytes = std::vector<std::byte>;

constexpr auto kBound = 20s;  ///< on every wait: what takes longer has failed

Bytes reversed(const Bytes& bytes) {
  return {bytes.rbegin(), bytes.rend()};
}

RequestPool hello_pool() {
  return RequestPool::same(std::as_bytes(std::span("hello", 5)),
                           std::as_bytes(std::span("olleh", 5)));
}

LoadPlan plan_of(std::uint64_t requests, std::uint32_t max_in_flight) {
  return {requests, std::nullopt, max_in_flight, kBound};
}

/// The server's end of a load thread's connection, played by the test.
class Peer {
 public:
  explicit Peer(core::Fd socket) : socket_(std::move(socket)) {}

  /// The payload of the next request; empty after the end of the stream.
  Bytes read_request() {
    for (;;) {
      const auto frame = protocol::parse_frame(received_, std::uint32_t{16} << 20);
      EXPECT_NE(frame.state, protocol::FrameView::State::bad);
      if (frame.state == protocol::FrameView::State::complete) {
        EXPECT_EQ(frame.id, MessageId::client_request);
        Bytes payload(frame.payload.begin(), frame.payload.end());
        received_.erase(received_.begin(),
                        received_.begin() + static_cast<std::ptrdiff_t>(frame.size()));
        return payload;
      }
      if (!read_more(kBound)) return {};
    }
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ASSERT_GT(count, 0);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  void respond(const Bytes& payload) {
    write(protocol::make_frame(MessageId::client_response, payload));
  }

  /// Whether a request, or part of one, is there within `time`.
  bool read_more(std::chrono::milliseconds time) {
    pollfd watched{socket_.get(), POLLIN, 0};
    if (::poll(&watched, 1, static_cast<int>(time.count())) <= 0) return false;
    const std::size_t before = received_.size();
    received_.resize(before + (1U << 20));
    const ssize_t count = ::recv(socket_.get(), received_.data() + before, 1U << 20, 0);
    received_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return count > 0;
  }

  [[nodiscard]] bool has_unread() const { return !received_.empty(); }
  void close() { socket_.reset(); }

 private:
  core::Fd socket_;
  Bytes received_;
};

/// A load thread at work, and its peer. finish() before the pool goes.
class Running {
 public:
  Running(const LoadPlan& plan, const RequestPool& pool) : Running(plan, pool, make_sockets()) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { finish(); }

  Peer& peer() { return peer_; }
  RunControl& control() { return control_; }
  const LoadThread& load() { return *load_; }

  /// Reverses whatever is asked, until the load thread is through.
  void answer_until_ended() {
    while (!ended_) {
      if (peer_.has_unread() || peer_.read_more(10ms)) {
        peer_.respond(reversed(peer_.read_request()));
      }
    }
  }

  const LoadResult& finish() {
    if (thread_.joinable()) thread_.join();
    return load_->result();
  }

  using Sockets = std::pair<core::Fd, core::Fd>;
  static Sockets make_sockets() {
    int fds[2];
    core::check_errno(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "socketpair");
    Sockets sockets{core::Fd(fds[0]), core::Fd(fds[1])};
    core::check_errno(::fcntl(fds[0], F_SETFL, O_NONBLOCK), "O_NONBLOCK");
    return sockets;
  }

 private:
  Running(const LoadPlan& plan, const RequestPool& pool, Sockets sockets)
      : peer_(std::move(sockets.second)),
        load_(
            std::make_unique<LoadThread>(7, only(std::move(sockets.first)), plan, pool, control_)),
        thread_([this] {
          load_->run();
          ended_ = true;
        }) {}

  static std::vector<core::Fd> only(core::Fd socket) {
    std::vector<core::Fd> sockets;
    sockets.push_back(std::move(socket));
    return sockets;
  }

  RunControl control_;
  Peer peer_;
  std::unique_ptr<LoadThread> load_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

TEST(LoadThread, AllAnswered) {
  const auto pool = RequestPool::random(40, Service::reverse);
  Running running(plan_of(1000, 16), pool);
  for (int i = 0; i < 1000; ++i) running.peer().respond(reversed(running.peer().read_request()));
  const auto& result = running.finish();
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.sent, 1000U);
  EXPECT_EQ(result.answered, 1000U);
  EXPECT_EQ(result.valid, 1000U);
  EXPECT_EQ(result.tx_bytes, 52'000U);
  EXPECT_EQ(result.rx_bytes, 52'000U);
  EXPECT_EQ(result.latency.count(), 1000U);
  EXPECT_EQ(running.load().progress(), 1000U);
}

/// A load thread with several connections, whose servers are peers[i].
class SeveralConnections : public testing::Test {
 protected:
  static constexpr std::size_t kCount = 5;

  void start(const LoadPlan& plan) {
    std::vector<core::Fd> sockets;
    for (std::size_t i = 0; i < kCount; ++i) {
      auto [own, other] = Running::make_sockets();
      sockets.push_back(std::move(own));
      peers_.emplace_back(std::move(other));
    }
    load_ = std::make_unique<LoadThread>(7, std::move(sockets), plan, pool_, control_);
    thread_ = std::thread([this] { load_->run(); });
  }
  const LoadResult& finish() {
    thread_.join();
    return load_->result();
  }
  void answer(Peer& peer) { peer.respond(reversed(peer.read_request())); }

  const RequestPool pool_ = RequestPool::random(40, Service::reverse);
  RunControl control_;
  std::vector<Peer> peers_;
  std::unique_ptr<LoadThread> load_;
  std::thread thread_;
};

TEST_F(SeveralConnections, AllAreServedAndCountedTogether) {
  start(plan_of(20, 3));
  for (int i = 0; i < 20; ++i) {
    for (Peer& peer : peers_) answer(peer);
  }
  const auto& result = finish();
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.sent, 20 * kCount);
  EXPECT_EQ(result.valid, 20 * kCount);
  EXPECT_EQ(result.latency.count(), 20 * kCount);
}

TEST_F(SeveralConnections, OneThatIsThroughMayBeClosedBeforeTheOthers) {
  start(plan_of(3, 1));
  for (Peer& peer : peers_) {
    for (int i = 0; i < 3; ++i) answer(peer);
    EXPECT_FALSE(peer.read_more(1ms));
    peer.close();
  }
  EXPECT_EQ(finish().fault, "");
}

TEST_F(SeveralConnections, AFaultOfOneNamesItAndEndsTheThread) {
  start(plan_of(10, 1));
  answer(peers_[3]);
  EXPECT_GT(peers_[3].read_request().size(), 0U);
  peers_[3].close();
  const auto& result = finish();
  EXPECT_EQ(result.fault.rfind("thread 7, connection 3, request 1: the server closed", 0), 0U)
      << result.fault;
}

TEST_F(SeveralConnections, TheSilenceOfOneIsAnErrorThoughOthersAreAnswered) {
  auto plan = plan_of(1'000'000'000, 1);
  plan.response_timeout = 100ms;
  start(plan);
  for (Peer& peer : peers_) {
    if (&peer != &peers_[2]) answer(peer);
  }
  std::atomic<bool> ended{false};
  std::thread others([&] {
    while (!ended) {
      for (Peer& peer : peers_) {
        if (&peer != &peers_[2] && peer.read_more(1ms)) answer(peer);
      }
    }
  });
  const auto& result = finish();
  ended = true;
  others.join();
  EXPECT_EQ(result.fault.rfind("thread 7, connection 2, request 0: no response for 0.1", 0), 0U)
      << result.fault;
}

TEST_F(SeveralConnections, AStopEndsAll) {
  start(plan_of(1'000'000'000, 2));
  for (Peer& peer : peers_) answer(peer);
  control_.stop();
  for (Peer& peer : peers_) peer.close();
  EXPECT_EQ(finish().fault, "");
}

TEST(LoadThread, ResponsesOneByteAtATime) {
  const auto pool = hello_pool();
  Running running(plan_of(20, 4), pool);
  for (int i = 0; i < 20; ++i) {
    const auto frame =
        protocol::make_frame(MessageId::client_response, reversed(running.peer().read_request()));
    for (const std::byte& byte : frame) running.peer().write(std::span(&byte, 1));
  }
  EXPECT_EQ(running.finish().fault, "");
  EXPECT_EQ(running.finish().valid, 20U);
}

TEST(LoadThread, EmptyRequestsAndResponses) {
  const auto pool = RequestPool::random(0, Service::echo);
  Running running(plan_of(10, 3), pool);
  for (int i = 0; i < 10; ++i) running.peer().respond(running.peer().read_request());
  EXPECT_EQ(running.finish().fault, "");
  EXPECT_EQ(running.finish().valid, 10U);
}

// More than the socket takes at once: partial writes must go on where they stopped.
TEST(LoadThread, LargeRequestsArriveWhole) {
  constexpr std::size_t kSize = std::size_t{3} << 20;
  const auto pool = RequestPool::random(kSize, Service::echo);
  Running running(plan_of(12, 4), pool);
  for (int i = 0; i < 12; ++i) {
    const auto request = running.peer().read_request();
    ASSERT_EQ(request.size(), kSize);
    running.peer().respond(request);
  }
  EXPECT_EQ(running.finish().fault, "");
  EXPECT_EQ(running.finish().valid, 12U);
}

TEST(LoadThread, TheWindowIsRefilledAndNeverExceeded) {
  const auto pool = hello_pool();
  Running running(plan_of(100, 4), pool);
  Bytes olleh;
  for (int i = 0; i < 4; ++i) olleh = reversed(running.peer().read_request());
  EXPECT_FALSE(running.peer().has_unread());
  for (int i = 4; i < 100; ++i) {
    // One answer makes room for exactly one request, while three are still due.
    running.peer().respond(olleh);
    ASSERT_EQ(running.peer().read_request().size(), 5U) << i;
    ASSERT_FALSE(running.peer().has_unread()) << i;
  }
  for (int i = 0; i < 4; ++i) running.peer().respond(olleh);
  EXPECT_EQ(running.finish().fault, "");
  EXPECT_EQ(running.finish().valid, 100U);
}

TEST(LoadThread, AMismatchNamesThreadAndRequest) {
  const auto pool = RequestPool::random(32, Service::reverse);
  Running running(plan_of(10, 2), pool);
  for (int i = 0; i < 3; ++i) running.peer().respond(reversed(running.peer().read_request()));
  auto wrong = reversed(running.peer().read_request());
  wrong[30] ^= std::byte{1};
  running.peer().respond(wrong);
  const auto& result = running.finish();
  EXPECT_EQ(result.fault.rfind("thread 7, request 3: the response differs at offset 30 of 32", 0),
            0U)
      << result.fault;
  EXPECT_EQ(result.valid, 3U);
  EXPECT_EQ(result.answered, 4U);
}

// Requests differ, so a response to a neighbouring one cannot pass.
TEST(LoadThread, ResponsesOutOfOrderAreWrong) {
  const auto pool = RequestPool::random(16, Service::echo);
  Running running(plan_of(2, 2), pool);
  const auto first = running.peer().read_request();
  const auto second = running.peer().read_request();
  running.peer().respond(second);
  running.peer().respond(first);
  EXPECT_EQ(running.finish().fault.rfind("thread 7, request 0: the response differs", 0), 0U);
}

TEST(LoadThread, ACloseCountsWhatIsUnanswered) {
  const auto pool = hello_pool();
  Running running(plan_of(10, 8), pool);
  running.peer().respond(reversed(running.peer().read_request()));
  for (int i = 0; i < 8; ++i) running.peer().read_request();
  running.peer().close();
  EXPECT_EQ(running.finish().fault,
            "thread 7, request 1: the server closed the connection; 8 requests unanswered");
}

TEST(LoadThread, AnErrorFrameBeforeACloseIsReported) {
  const auto pool = RequestPool::random(std::size_t{1} << 20, Service::echo);
  Running running(plan_of(100, 100), pool);
  // Closing with requests unread resets the connection while the load thread is still sending.
  ASSERT_TRUE(running.peer().read_more(kBound));
  running.peer().write(protocol::make_error_frame(protocol::Refusal::frame_too_long, "1 MiB?"));
  running.peer().close();
  EXPECT_EQ(running.finish().fault, "thread 7, request 0: the server reports error 2: 1 MiB?");
}

TEST(LoadThread, AnUnaskedResponseIsWrong) {
  const auto pool = hello_pool();
  Running running(plan_of(2, 1), pool);
  auto twice =
      protocol::make_frame(MessageId::client_response, reversed(running.peer().read_request()));
  twice.insert(twice.end(), twice.begin(), twice.end());
  running.peer().write(twice);
  EXPECT_EQ(running.finish().fault, "thread 7, request 1: the server sent more than was asked for");
}

TEST(LoadThread, SilenceIsAnError) {
  const auto pool = hello_pool();
  auto plan = plan_of(10, 4);
  plan.response_timeout = 50ms;
  Running running(plan, pool);
  running.peer().respond(reversed(running.peer().read_request()));
  const auto& result = running.finish();
  EXPECT_EQ(result.fault.rfind("thread 7, request 1: no response for 0.0", 0), 0U) << result.fault;
  EXPECT_NE(result.fault.find("4 requests unanswered"), std::string::npos) << result.fault;
}

TEST(LoadThread, AfterAStopWhatIsDueIsAwaited) {
  const auto pool = hello_pool();
  Running running(plan_of(1'000'000, 4), pool);
  for (int i = 0; i < 100; ++i) running.peer().respond(reversed(running.peer().read_request()));
  running.control().stop();
  running.answer_until_ended();
  const auto& result = running.finish();
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.answered, result.sent);
  EXPECT_LT(result.answered, 1'000'000U);
}

TEST(LoadThread, AfterAStopItLeavesWithinABound) {
  const auto pool = hello_pool();
  Running running(plan_of(100, 4), pool);
  for (int i = 0; i < 4; ++i) running.peer().read_request();
  const auto begin = core::Clock::now();
  running.control().stop();
  const auto& result = running.finish();
  EXPECT_LT(core::Clock::now() - begin, 10s);
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.sent - result.answered, 4U);
}

TEST(LoadThread, ACloseAfterAStopIsNoFault) {
  const auto pool = hello_pool();
  Running running(plan_of(100, 4), pool);
  running.peer().read_request();
  running.control().stop();
  running.peer().close();
  const auto& result = running.finish();
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.answered, 0U);
  EXPECT_EQ(result.sent, 4U);
}

TEST(LoadThread, WithADurationItEndsByTime) {
  const auto pool = hello_pool();
  auto plan = plan_of(0, 4);
  plan.duration = 100ms;
  const auto begin = core::Clock::now();
  Running running(plan, pool);
  running.answer_until_ended();
  const auto& result = running.finish();
  EXPECT_GE(core::Clock::now() - begin, 100ms);
  EXPECT_EQ(result.fault, "");
  EXPECT_GT(result.valid, 4U);
  EXPECT_EQ(result.valid, result.sent);
  EXPECT_GE(result.last_response - begin, 50ms);
}

}  // namespace
}  // namespace offload::client
