#include "apps/client/load/connector.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/readable.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

using namespace std::chrono_literals;
using core::Clock;
using support::kBound;

Target target_of(std::uint16_t port) {
  return {net::resolve("127.0.0.1", port), {}};
}

/// A port of the loopback interface: bound, so that no other program takes it; listens after
/// listen().
struct Port {
  Port() : socket(net::bind_tcp(net::resolve("127.0.0.1", 0).front())) {}
  [[nodiscard]] std::uint16_t number() const { return net::local_address(socket.get()).port(); }
  void listen() const { net::start_listening(socket.get(), 8); }

  core::Fd socket;
};

TEST(Connector, ConnectsToAServerThatListens) {
  const core::Signals signals;
  const Port port;
  port.listen();
  const Target target = target_of(port.number());
  Connector connector(target, Clock::now() + kBound, signals);
  EXPECT_EQ(connector.address(), 0U);
  const net::Stream first = connector.connect();
  const net::Stream second = connector.connect();
  ASSERT_TRUE(first.valid() && second.valid());
  EXPECT_EQ(connector.times().count(), 2U);
  EXPECT_EQ(net::peer_address(first.fd()).port(), port.number());
  const core::Fd accepted(::accept(port.socket.get(), nullptr, nullptr));
  EXPECT_TRUE(accepted.valid());
}

TEST(Connector, TriesAgainUntilTheServerListens) {
  const core::Signals signals;
  const support::LogCapture log;
  const Port port;
  const auto begin = Clock::now();
  const std::jthread server([&] {
    std::this_thread::sleep_for(50ms);
    port.listen();
  });
  const Target target = target_of(port.number());
  Connector connector(target, begin + kBound, signals);
  EXPECT_TRUE(connector.connect().valid());
  EXPECT_GE(Clock::now() - begin, 50ms);
  EXPECT_EQ(log.text(), "info: waiting for the server: cannot connect to 127.0.0.1:" +
                            std::to_string(port.number()) + ": Connection refused\n");
}

TEST(Connector, TriesEachAddress) {
  const core::Signals signals;
  const Port silent;
  const Port port;
  port.listen();
  Target target = target_of(silent.number());
  target.addresses.push_back(target_of(port.number()).addresses.front());
  Connector connector(target, Clock::now() + kBound, signals);
  const net::Stream stream = connector.connect();
  ASSERT_TRUE(stream.valid());
  EXPECT_EQ(net::peer_address(stream.fd()).port(), port.number());
  EXPECT_EQ(connector.address(), 1U);
  EXPECT_EQ(connector.times().count(), 1U);
}

// TCP has no connections to the broadcast address.
TEST(Connector, TriesTheNextAddressIfConnectingFailsAtOnce) {
  const core::Signals signals;
  const Port port;
  port.listen();
  Target target{net::resolve("255.255.255.255", 9), {}};
  EXPECT_THROW((void)net::start_connect(target.addresses.front()), core::Error);
  target.addresses.push_back(target_of(port.number()).addresses.front());
  Connector connector(target, Clock::now() + kBound, signals);
  EXPECT_TRUE(connector.connect().valid());
  EXPECT_EQ(connector.address(), 1U);
}

TEST(Connector, GivesUpAtItsDeadlineWithTheLastReason) {
  const core::Signals signals;
  const Port port;  // bound, not listening: connections are refused
  const auto begin = Clock::now();
  const Target target = target_of(port.number());
  Connector connector(target, begin + 100ms, signals);
  const auto error = support::thrown_by([&] { connector.connect(); });
  EXPECT_EQ(error.code(), core::ErrorCode::timed_out);
  EXPECT_STREQ(error.what(), ("cannot connect to 127.0.0.1:" + std::to_string(port.number()) +
                              ": Connection refused (--connect-timeout is over)")
                                 .c_str());
  EXPECT_GE(Clock::now() - begin, 100ms);
}

TEST(Connector, MakesOneAttemptWhateverTheDeadline) {
  const core::Signals signals;
  const Port port;
  port.listen();
  const Target target = target_of(port.number());
  Connector connector(target, Clock::now() - 1s, signals);
  EXPECT_TRUE(connector.connect().valid());
}

// A full queue of connections: the attempt is not answered.
TEST(Connector, AnAttemptHasAShortTimeWhateverTheDeadline) {
  const core::Signals signals;
  const support::LogCapture log;
  const Port port;
  net::start_listening(port.socket.get(), 0);
  const Target target = target_of(port.number());
  const core::Fd first = net::start_connect(target.addresses.front());
  ASSERT_TRUE(support::is_readable(port.socket.get(), static_cast<int>(kBound / 1ms)));
  const auto begin = Clock::now();
  Connector connector(target, begin - 1s, signals);
  const auto error = support::thrown_by([&] { connector.connect(); });
  EXPECT_GE(Clock::now() - begin, kFirstPause);
  EXPECT_EQ(error.code(), core::ErrorCode::timed_out);
}

// A server that ends connections may be starting; one that does not use TLS stays so.
TEST(Connector, EachPauseIsTwiceAsLong) {
  const core::Signals signals;
  const support::LogCapture log;
  const Port port;
  port.listen();
  Target target = target_of(port.number());
  target.tls = net::TlsContext::psk_client({"client", std::vector<std::byte>(16)});
  // On a busy machine a pause may last longer, but not each time.
  EXPECT_TRUE(support::eventually([&] {
    std::vector<core::TimePoint> attempts;
    core::Fd accepted;
    std::jthread server([&] {
      for (int i = 0; i < 5; ++i) {
        if (!support::is_readable(port.socket.get(), static_cast<int>(kBound / 1ms))) return;
        accepted = core::Fd(::accept(port.socket.get(), nullptr, nullptr));
        attempts.push_back(Clock::now());
        if (i < 4) accepted.reset();
      }
      const std::string_view plain = "HTTP/1.1 400 Bad Request\r\n\r\n";
      ::send(accepted.get(), plain.data(), plain.size(), MSG_NOSIGNAL);
    });
    Connector connector(target, Clock::now() + 2 * kBound, signals);
    const auto error = support::thrown_by([&] { connector.connect(); });
    EXPECT_EQ(error.code(), core::ErrorCode::bad_message);
    server.join();
    if (attempts.size() != 5) return false;
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_GE(attempts[i + 1] - attempts[i], kFirstPause * (1 << i));
    }
    return attempts[4] - attempts[3] < kFirstPause * 27;  // three times as long each time
  }));
}

// A name that cannot be resolved: the tests send nothing to a name server.
const std::string kNoName(64, 'x');

TEST(ResolveBy, GivesUpAtItsDeadlineWithTheLastReason) {
  const core::Signals signals;
  const support::LogCapture log;
  const auto begin = Clock::now();
  const auto error =
      support::thrown_by([&] { (void)resolve_by(begin + 100ms, kNoName, 1, signals); });
  EXPECT_EQ(error.code(), core::ErrorCode::not_found);
  EXPECT_NE(std::string(error.what()).find("cannot resolve"), std::string::npos);
  EXPECT_NE(std::string(error.what()).find("(--connect-timeout is over)"), std::string::npos);
  EXPECT_GE(Clock::now() - begin, 100ms);
  const std::string waiting = "info: waiting for the server: ";
  EXPECT_EQ(log.text().find(waiting), 0U) << log.text();
  EXPECT_EQ(log.text().rfind(waiting), 0U) << "told once";
}

TEST(ResolveBy, AsksOnceWhateverTheDeadline) {
  const core::Signals signals;
  EXPECT_EQ(resolve_by(Clock::now() - 1s, "127.0.0.1", 7, signals).front().port(), 7);
}

TEST(ResolveByDeathTest, ASignalEndsTheWaitAndIsLeftToBeTaken) {
  EXPECT_EXIT(
      {
        core::Signals signals;
        ::kill(::getpid(), SIGTERM);
        const auto addresses = resolve_by(Clock::now() + 10 * kBound, kNoName, 1, signals);
        std::_Exit(addresses.empty() && signals.take() == SIGTERM ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// Runs in a separate process: a signal's mask and action belong to the process.
TEST(ConnectorDeathTest, ASignalEndsTheWaitAndIsLeftToBeTaken) {
  EXPECT_EXIT(
      {
        core::Signals signals;
        const Port port;
        const Target target = target_of(port.number());
        Connector connector(target, Clock::now() + 10 * kBound, signals);
        ::kill(::getpid(), SIGTERM);
        const bool connected = connector.connect().valid();
        std::_Exit(!connected && signals.take() == SIGTERM ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace offload::client
