#include "apps/client/run/load_run.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "net/socket.hpp"
#include "tests/client/load/load_fixture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

/// A server that answers every request with its bytes reversed; with `wrong`, the first one
/// wrongly.
class ReversingServer {
 public:
  explicit ReversingServer(bool wrong = false)
      : wrong_(wrong),
        listener_(net::listen_tcp(net::resolve("127.0.0.1", 0).front(), 64)),
        thread_([this] { run(); }) {}
  ReversingServer(const ReversingServer&) = delete;
  ReversingServer& operator=(const ReversingServer&) = delete;
  ~ReversingServer() { ended_ = true; }

  [[nodiscard]] std::uint16_t port() const { return net::local_address(listener_.get()).port(); }

 private:
  void run() {
    std::vector<FakeServer> connections;
    while (!ended_) {
      pollfd watched{listener_.get(), POLLIN, 0};
      if (::poll(&watched, 1, 1) == 1) {
        connections.emplace_back(core::Fd(::accept(listener_.get(), nullptr, nullptr)));
      }
      for (FakeServer& connection : connections) answer(connection);
    }
  }

  void answer(FakeServer& connection) {
    while (connection.has_unread() || connection.read_more(std::chrono::milliseconds(0))) {
      Bytes response = reversed(connection.read_request());
      if (response.empty()) return;  // the client is gone
      if (std::exchange(wrong_, false)) response.front() ^= std::byte{1};
      if (!connection.write(protocol::make_frame(MessageId::client_response, response))) return;
    }
  }

  bool wrong_;
  core::Fd listener_;
  std::atomic<bool> ended_{false};
  std::jthread thread_;
};

Options options_for(const ReversingServer& server) {
  Options options;
  options.server_address = "127.0.0.1";
  options.server_port = server.port();
  options.thread_count = 2;
  options.connections = 3;
  options.iteration_count = 20;
  options.max_concurrent_messages = 4;
  options.response_timeout = kBound;
  return options;
}

RunResult run(const Options& options, core::Signals& signals) {
  const Load load(options, signals);
  return run_load(options, {options.rate, options.max_concurrent_messages}, load, signals, {});
}

TEST(LoadRun, AllThreadsAndConnectionsAreCountedTogether) {
  const ReversingServer server;
  core::Signals signals;
  const RunResult result = run(options_for(server), signals);
  EXPECT_TRUE(result.faults.empty()) << result.faults.front();
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.total->answered, 2U * 3 * 20);
  EXPECT_EQ(result.total->valid, 2U * 3 * 20);
  EXPECT_EQ(result.unanswered, 0U);
  EXPECT_GT(result.duration, core::Duration{});
}

TEST(LoadRun, RandomRequestsAreCheckedAgainstTheService) {
  const ReversingServer server;
  core::Signals signals;
  Options options = options_for(server);
  options.sizes = SizeMix{{100, 1}};
  EXPECT_TRUE(run(options, signals).faults.empty());
  options.service = Service::echo;  // which the server does not do
  EXPECT_FALSE(run(options, signals).faults.empty());
}

TEST(LoadRun, AFaultOfOneThreadStopsAll) {
  const ReversingServer server(true);
  core::Signals signals;
  Options options = options_for(server);
  options.iteration_count = 1'000'000'000'000;
  const RunResult result = run(options, signals);
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_NE(result.faults.front().find("request 0: the response differs at offset 0 of 5"),
            std::string::npos)
      << result.faults.front();
  EXPECT_LT(result.total->answered, 6U * 1'000'000'000'000);
  EXPECT_EQ(result.verdict.code, LoadVerdict::Code::cut_short);
  EXPECT_EQ(result.verdict.text, "there is no verdict: an error ended the run");
}

TEST(LoadRun, WhatFailsBeforeTheStartEndsTheThreads) {
  const ReversingServer server;
  core::Signals signals;
  const Options options = options_for(server);
  const Load load(options, signals);
  RunObserver observer;
  observer.on_start = [] { throw std::bad_alloc(); };
  EXPECT_THROW((void)run_load(options, {options.rate, options.max_concurrent_messages}, load,
                              signals, observer),
               std::bad_alloc);
}

TEST(LoadRun, AWrongResponseIsAnAnswer) {
  const ReversingServer server(true);
  core::Signals signals;
  Options options = options_for(server);
  options.count_errors = true;
  const RunResult result = run(options, signals);
  EXPECT_EQ(result.total->valid, result.total->sent - 1);
  EXPECT_EQ(result.total->answered, result.total->sent);
  EXPECT_EQ(result.unanswered, 0U);
}

TEST(LoadRun, ErrorsOfTheWarmUpCount) {
  const ReversingServer server(true);
  core::Signals signals;
  Options options = options_for(server);
  options.count_errors = true;
  options.warmup = std::chrono::milliseconds(500);  // the first response comes within it
  options.duration = std::chrono::milliseconds(20);
  const RunResult result = run(options, signals);
  EXPECT_EQ(result.total->errors.total(), 1U);
  EXPECT_TRUE(result.has_errors());
  EXPECT_EQ(result.unanswered, 0U);
}

TEST(LoadRun, AnOpenLoopSendsAsManyAsAreDue) {
  const ReversingServer server;
  core::Signals signals;
  Options options = options_for(server);
  options.rate = 2000;
  options.duration = std::chrono::milliseconds(200);
  options.lag_tolerance = kBound;  // how late this machine is does not matter here
  const RunResult result = run(options, signals);
  EXPECT_TRUE(result.faults.empty()) << result.faults.front();
  EXPECT_EQ(result.total->due, 400U);
  EXPECT_EQ(result.total->valid + result.total->never_sent, 400U);
  EXPECT_EQ(result.total->response.count(), result.total->valid);
  EXPECT_EQ(result.total->lag.count(), 400U);
}

TEST(LoadRun, AScheduleIsReplayedByAllThreads) {
  const ReversingServer server;
  core::Signals signals;
  const support::TempDir directory;
  directory.write("schedule", "0 10\n1ms 100\n2ms 10\n3ms 5\n4ms 10\n");
  Options options = options_for(server);
  options.schedule = directory.file("schedule");
  const RunResult result = run(options, signals);
  EXPECT_TRUE(result.faults.empty()) << result.faults.front();
  EXPECT_EQ(result.total->valid, 5U);
  EXPECT_EQ(result.total->tx_bytes, 5 * protocol::kFrameHeaderSize + 135);
}

TEST(LoadRun, WithoutAServerItThrows) {
  const core::Fd bound = net::bind_tcp(net::resolve("127.0.0.1", 0).front());
  core::Signals signals;
  Options options;
  options.server_address = "127.0.0.1";
  options.server_port = net::local_address(bound.get()).port();
  options.connect_timeout = std::chrono::milliseconds(20);
  EXPECT_EQ(support::thrown_by([&] { run(options, signals); }).code(), core::ErrorCode::timed_out);
}

}  // namespace
}  // namespace offload::client
