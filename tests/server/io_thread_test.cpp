#include "apps/server/io_thread.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "core/error.hpp"
#include "tests/server/client_fixture.hpp"
#include "tests/server/worker_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::server {
namespace {

using channel::Wakeup;
using protocol::Refusal;
using support::bytes_of;
using support::eventually;
using test::error;
using test::response;
using test::send_request;

/// A worker that cannot ring: the thread looks for its responses.
constexpr WorkerState kAttached{Wakeup::polling};
constexpr WorkerState kAbsent{};
constexpr WorkerState kExpired{Wakeup::none, true};

/// A line to a worker that cannot be reached any more.
class BrokenLine final : public comch::DataEndpoint {
 public:
  std::unique_ptr<comch::DataConnection> start(progress::Engine&, const kernels::ChannelView&,
                                               comch::DataHandler&, std::uint32_t) override {
    throw core::Error(core::ErrorCode::connection_reset, "the line is cut");
  }
};

/// A running thread; its clients, its worker and the control thread are played by the test.
class IoThreadTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kDepth = 4;
  static constexpr std::uint32_t kLongest = 64;

  IoThreadTest() { thread_.start(); }

  void connect() {
    auto [client, server] = test::connected_sockets();
    client_ = std::move(client);
    received_ = {};
    thread_.take(std::move(server));
  }

  /// The next frame for the client, while the worker works.
  std::optional<test::Received::Frame> next(bool worker_works = true) {
    std::optional<test::Received::Frame> frame;
    eventually([&] {
      if (worker_works) worker_.serve_all();
      received_.read(client_);
      frame = received_.take();
      return frame.has_value() || received_.ended;
    });
    return frame;
  }

  bool client_ends() {
    return eventually([&] { return received_.read(client_), received_.ended; });
  }
  bool drains() {
    return eventually([&] { return thread_.drained(); });
  }

  channel::ChannelMemory memory_{0, kDepth, kLongest, -1};
  test::Worker worker_{memory_};
  std::atomic<int> lines_lost_{0};
  IoThread thread_{
      {0, -1, kLongest, core::Duration{}, [this](const std::string&) { ++lines_lost_; }}, memory_};
  core::Fd client_;
  test::Received received_;
};

TEST_F(IoThreadTest, AnswersRequests) {
  thread_.set_worker(kAttached);
  connect();
  for (int i = 0; i < 3 * static_cast<int>(kDepth); ++i) {
    send_request(client_, bytes_of("request"));
    EXPECT_EQ(next(), response(bytes_of("tseuqer")));
  }
}

TEST_F(IoThreadTest, AWorkerThatRingsWakesIt) {
  thread_.set_worker({Wakeup::doorbell});
  connect();
  channel::Ringer ringer = worker_.ringer();
  for (int i = 0; i < 3; ++i) {
    send_request(client_, bytes_of("request"));
    ASSERT_TRUE(eventually([&] { return worker_.serve(); }));
    ringer.ring();
    EXPECT_EQ(next(), response(bytes_of("tseuqer")));
  }
}

TEST_F(IoThreadTest, CountsItsClients) {
  EXPECT_EQ(thread_.client_count(), 0U);
  connect();
  const core::Fd first = std::move(client_);
  connect();
  EXPECT_EQ(thread_.client_count(), 2U);
  client_.reset();
  EXPECT_TRUE(eventually([&] { return thread_.client_count() == 1; }));
}

TEST_F(IoThreadTest, WhatIsNoSocketIsTurnedAway) {
  const support::LogCapture log;
  thread_.take(core::Fd{});
  EXPECT_TRUE(eventually([&] { return thread_.client_count() == 0; }));
  thread_.stop();
  EXPECT_TRUE(log.has("is turned away")) << log.text();
}

// ---- The worker comes and goes

TEST_F(IoThreadTest, RequestsWaitForAWorker) {
  connect();
  send_request(client_, bytes_of("early"));
  ASSERT_TRUE(eventually([&] { return worker_.serve(); }));
  thread_.set_worker(kAttached);
  EXPECT_EQ(next(), response(bytes_of("ylrae")));
}

TEST_F(IoThreadTest, WithoutAWorkerForTooLongTheyAreRefused) {
  connect();
  send_request(client_, bytes_of("before"));
  thread_.set_worker(kExpired);
  EXPECT_EQ(next(false), error(Refusal::worker_unavailable));
  send_request(client_, bytes_of("after"));
  EXPECT_EQ(next(false), error(Refusal::worker_unavailable));
  thread_.set_worker(kAttached);
  send_request(client_, bytes_of("again"));
  EXPECT_EQ(next(), response(bytes_of("niaga")));
}

TEST_F(IoThreadTest, ALineThatBreaksIsReported) {
  thread_.set_worker({Wakeup::engine}, std::make_unique<BrokenLine>());
  EXPECT_TRUE(eventually([&] { return lines_lost_ == 1; }));
}

// ---- Its end

TEST_F(IoThreadTest, DrainedItAnswersWhatWasReadAndTakesNoMore) {
  connect();
  send_request(client_, bytes_of("request"));
  ASSERT_TRUE(eventually([&] { return worker_.serve(); }));  // so it was read
  EXPECT_FALSE(thread_.drained());
  thread_.set_worker(kAttached);
  thread_.drain();
  EXPECT_EQ(next(), response(bytes_of("tseuqer")));
  EXPECT_TRUE(client_ends());
  client_.reset();
  EXPECT_TRUE(drains());
  EXPECT_EQ(thread_.client_count(), 0U);
}

TEST_F(IoThreadTest, WithoutAWorkerDrainingRefuses) {
  thread_.set_worker(kAttached);
  connect();
  send_request(client_, bytes_of("request"));
  ASSERT_TRUE(eventually([&] { return worker_.has_request(); }));
  thread_.drain();
  thread_.set_worker(kAbsent);  // while it is drained
  EXPECT_EQ(next(false), error(Refusal::shutting_down));
  EXPECT_TRUE(client_ends());
  client_.reset();
  EXPECT_TRUE(drains());
}

TEST_F(IoThreadTest, WithoutClientsItIsDrainedAtOnce) {
  thread_.drain();
  EXPECT_TRUE(drains());
}

TEST_F(IoThreadTest, StopEndsItWithAllClients) {
  const support::LogCapture log;
  thread_.set_worker(kAttached);
  connect();
  send_request(client_, bytes_of("1"));
  EXPECT_EQ(next(), response(bytes_of("1")));
  thread_.stop();
  EXPECT_TRUE(client_ends());
  EXPECT_TRUE(log.has("I/O thread 0: 1 connections, 1 responses, 0 refusals")) << log.text();
  thread_.stop();  // once
}

TEST_F(IoThreadTest, CannotRunOnAProcessorThatIsNotThere) {
  channel::ChannelMemory memory(1, kDepth, kLongest, -1);
  IoThread thread({1, 1 << 20, kLongest, core::Duration{}, {}}, memory);
  EXPECT_THROW(thread.start(), core::Error);
}

}  // namespace
}  // namespace offload::server
