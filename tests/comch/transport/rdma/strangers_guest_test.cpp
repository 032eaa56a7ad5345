#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <list>
#include <optional>

#include "comch/session/handshake.hpp"
#include "comch/session/pending_connections.hpp"
#include "comch/transport/rdma/adapter.hpp"
#include "core/error.hpp"
#include "rdma/cm/cm_connection.hpp"
#include "rdma/connection/completion_loop.hpp"
#include "rdma/connection/connection.hpp"
#include "tests/comch/keys.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"

/// Strangers over RDMA, where there is a device, whose address RDMA_GUEST_ADDRESS is.
namespace offload::comch {
namespace {

/// Connects and takes no message: it posts no receives.
struct Deaf {
  explicit Deaf(const rdma::CmAddress& server)
      : route(rdma::route_to(server, kHandshakeTime)),
        adapter(route.device),
        completions(adapter.device, engine, 8),
        connection({adapter.device, adapter.domain, adapter.registrar, completions},
                   options(path_of(route)), "stranger"),
        link(engine, connection, {[](rdma::CmConnection&) {}, [](auto&, const core::Error&) {}}) {
    connection.connect(engine);
    connection.start();
  }
  void connect(const rdma::CmAddress& server) { link.connect(server, kHandshakeTime); }
  ~Deaf() {
    link.disconnect();
    stop();
  }
  /// Its queue pair is no more, and the server is not told.
  void stop() {
    if (connection.state() == progress::Context::State::running) connection.stop();
    while (connection.state() != progress::Context::State::idle) {
      engine.run_once(core::Clock::now() + std::chrono::milliseconds(1));
    }
  }
  static rdma::ConnectionOptions options(const rdma::PathOptions& path) {
    rdma::ConnectionOptions options;
    static_cast<rdma::PathOptions&>(options) = path;
    options.queues.max_send_wr = options.queues.max_recv_wr = 4;
    return options;
  }

  rdma::Route route;
  Adapter adapter;
  progress::Engine engine;
  rdma::CompletionLoop completions;
  rdma::Connection connection;
  rdma::CmConnection link;
};

class RdmaStrangers : public testing::Test {
 protected:
  static Address address() {
    const char* const host = std::getenv("RDMA_GUEST_ADDRESS");
    return test::address_with(std::string("rdma:") + (host != nullptr ? host : "?") + ":0",
                              test::keyring_of(7));
  }
  void turn() { engine_.run_once(core::Clock::now() + std::chrono::milliseconds(1)); }

  support::LogCapture log_;
  progress::Engine engine_;
  PendingConnections pending_{engine_, address(), [](auto, const auto&) {}};
  const rdma::CmAddress at_{pending_.address().host, pending_.address().port};
};

// A message to a queue pair that is no more is under way until all retries are over: a connection's
// end would wait 50 ms for it.
TEST_F(RdmaStrangers, ThatDoNotAnswerAreNotWaitedFor) {
  constexpr int kStrangers = 8;
  constexpr core::Duration kLinger = std::chrono::milliseconds(50);
  core::Duration waited{};
  for (int i = 0; i < kStrangers; ++i) {
    Deaf stranger(at_);
    stranger.connect(at_);
    ASSERT_TRUE(support::eventually(
        [&] { return stranger.link.state() == rdma::CmConnection::State::connected; },
        [&] {
          turn();
          stranger.engine.run_once(core::Clock::now() + std::chrono::milliseconds(1));
        }));
    stranger.stop();
    for (int turns = 0; turns < 5; ++turns) turn();  // the challenge is sent
    const auto began = core::Clock::now();
    pending_.tick(engine_.run_time() + std::chrono::seconds(6));
    waited += core::Clock::now() - began;
  }
  EXPECT_LT(waited, kStrangers * kLinger);
}

// All are made before the first connects: a busy machine makes so few a second as are let in.
TEST_F(RdmaStrangers, AreFewOfOneAddressAndThenRejected) {
  constexpr auto kStrangers = static_cast<std::size_t>(3 * net::SourceLimits::kBurst);
  std::list<Deaf> strangers;
  while (strangers.size() < kStrangers) strangers.emplace_back(at_);
  for (Deaf& stranger : strangers) stranger.connect(at_);
  const auto all_connected = [&] {
    return std::none_of(strangers.begin(), strangers.end(), [](const Deaf& stranger) {
      return stranger.link.state() == rdma::CmConnection::State::connecting;
    });
  };
  EXPECT_TRUE(support::eventually(all_connected, [&] {
    turn();
    for (Deaf& stranger : strangers) stranger.engine.run_once(core::Clock::now());
  }));
  EXPECT_TRUE(std::any_of(strangers.begin(), strangers.end(), [](const Deaf& stranger) {
    return stranger.link.state() == rdma::CmConnection::State::ended;
  }));
  EXPECT_TRUE(log_.has("too many of its network prove no key")) << log_.text();
}

}  // namespace
}  // namespace offload::comch
