#include "apps/client/load_run.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "net/socket.hpp"
#include "tests/client/load_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

/// A server that answers every request with its bytes reversed; with `wrong`, the first one
/// wrongly.
class ReversingServer {
 public:
  explicit ReversingServer(bool wrong = false)
      : wrong_(wrong),
        listener_(net::listen_tcp(net::resolve("127.0.0.1", 0, true).front(), 64)),
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

TEST(LoadRun, AllThreadsAndConnectionsAreCountedTogether) {
  const ReversingServer server;
  core::Signals signals;
  const RunOutcome outcome = run_load(options_for(server), signals);
  EXPECT_TRUE(outcome.faults.empty()) << outcome.faults.front();
  EXPECT_FALSE(outcome.interrupted);
  EXPECT_EQ(outcome.statistics.operations, 2U * 3 * 20);
  EXPECT_EQ(outcome.statistics.valid, 2U * 3 * 20);
  EXPECT_EQ(outcome.statistics.unanswered, 0U);
  EXPECT_GT(outcome.statistics.duration, core::Duration{});
}

TEST(LoadRun, RandomRequestsAreCheckedAgainstTheService) {
  const ReversingServer server;
  core::Signals signals;
  Options options = options_for(server);
  options.size = 100;
  EXPECT_TRUE(run_load(options, signals).faults.empty());
  options.service = Service::echo;  // which the server does not do
  EXPECT_FALSE(run_load(options, signals).faults.empty());
}

TEST(LoadRun, AFaultOfOneThreadStopsAll) {
  const ReversingServer server(true);
  core::Signals signals;
  Options options = options_for(server);
  options.iteration_count = 1'000'000'000'000;
  const RunOutcome outcome = run_load(options, signals);
  ASSERT_EQ(outcome.faults.size(), 1U);
  EXPECT_NE(outcome.faults.front().find("request 0: the response differs at offset 0 of 5"),
            std::string::npos)
      << outcome.faults.front();
  EXPECT_LT(outcome.statistics.operations, 6U * 1'000'000'000'000);
}

TEST(LoadRun, WithoutAServerItThrows) {
  const core::Fd bound = net::bind_tcp(net::resolve("127.0.0.1", 0, true).front());
  core::Signals signals;
  Options options;
  options.server_address = "127.0.0.1";
  options.server_port = net::local_address(bound.get()).port();
  options.connect_timeout = std::chrono::milliseconds(20);
  EXPECT_EQ(support::thrown_by([&] { run_load(options, signals); }).code(),
            core::ErrorCode::timed_out);
}

}  // namespace
}  // namespace offload::client
