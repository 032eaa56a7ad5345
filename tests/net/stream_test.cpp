#include "net/stream.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string>

#include "net/connect_attempt.hpp"
#include "tests/net/tls/tls_pair.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/certificates.hpp"

namespace offload::net {
namespace {

using support::Bytes;

/// Receives until there is nothing more; nothing at the end of the stream.
std::optional<Bytes> receive_all(Stream& stream) {
  Bytes all;
  Bytes room(4096);
  while (true) {
    const ssize_t count = stream.receive(room);
    if (count < 0) return all;
    if (count == 0) return std::nullopt;
    all.insert(all.end(), room.begin(), room.begin() + count);
  }
}

/// Two streams that are connected, plain or in TLS.
class StreamTest : public testing::TestWithParam<bool> {
 protected:
  StreamTest() {
    auto sockets = TlsPair::make_sockets();
    if (!GetParam()) {
      here_ = Stream(std::move(sockets.first));
      there_ = Stream(std::move(sockets.second));
      return;
    }
    const auto server = TlsContext::server(authority_.issue("server", "DNS:server.test"));
    here_ = Stream(std::move(sockets.first), server);
    there_ =
        Stream(std::move(sockets.second), TlsContext::client("server.test", authority_.ca_file()));
    for (int turn = 0; turn < 10; ++turn) {
      if (!there_done_) there_done_ = there_.handshake() == TlsHandshake::done;
      if (!here_done_) here_done_ = here_.handshake() == TlsHandshake::done;
    }
    EXPECT_TRUE(here_done_ && there_done_);
  }

  support::Authority authority_{"an authority"};
  bool here_done_ = false;
  bool there_done_ = false;
  Stream here_;
  Stream there_;
};

TEST_P(StreamTest, CarriesPiecesAndBytesAndThenItsEnd) {
  EXPECT_TRUE(here_.valid());
  EXPECT_EQ(here_.is_tls(), GetParam());
  EXPECT_EQ(here_.tls() != nullptr, GetParam());
  Bytes one = support::random_bytes(100, 1);
  Bytes two = support::random_bytes(50, 2);
  std::array<iovec, 2> pieces{iovec{one.data(), one.size()}, iovec{two.data(), two.size()}};
  EXPECT_EQ(here_.send(pieces), 150);
  EXPECT_EQ(here_.send(std::span<const std::byte>(two)), 50);
  Bytes expected = one;
  expected.insert(expected.end(), two.begin(), two.end());
  expected.insert(expected.end(), two.begin(), two.end());
  EXPECT_EQ(receive_all(there_), expected);
  EXPECT_FALSE(there_.has_pending());
  EXPECT_FALSE(there_.wants_write());
  here_.end_sending();
  EXPECT_EQ(receive_all(there_), std::nullopt);
  EXPECT_FALSE(here_.is_tls()) << "its memory is freed";
  there_.close();
  EXPECT_FALSE(there_.valid());
  EXPECT_FALSE(there_.is_tls());
}

TEST_P(StreamTest, ASendThatFailsCanLeaveWhatHasArrived) {
  here_.keep_receiving();
  ASSERT_EQ(there_.send(support::bytes_of("the last")), 8);
  ::shutdown(there_.fd(), SHUT_RD);
  EXPECT_EQ(here_.send(support::bytes_of("x")), -1);
  EXPECT_EQ(errno, EPIPE);
  Bytes room(10);
  EXPECT_EQ(here_.receive(room), 8);
}

TEST_P(StreamTest, WithoutATimeOfArrivalThereIsNone) {
  ASSERT_EQ(there_.send(support::bytes_of("hello")), 5);
  Bytes room(10);
  WallTime arrival = WallTime(std::chrono::hours(1));
  EXPECT_EQ(here_.receive(room, arrival), 5);
  EXPECT_EQ(arrival, WallTime{});
}

TEST_P(StreamTest, ASendIsLimitedByTheRoomAndTheNumberOfPieces) {
  Bytes byte(1);
  std::vector<iovec> pieces(IOV_MAX + 1, iovec{byte.data(), byte.size()});
  const ssize_t sent = here_.send(pieces);
  EXPECT_GE(sent, 1);
  EXPECT_LE(sent, IOV_MAX + 1);
  EXPECT_EQ(receive_all(there_), Bytes(static_cast<std::size_t>(sent)));
  const Bytes much(1U << 24);
  EXPECT_LT(here_.send(std::span(much)), static_cast<ssize_t>(much.size()));
  ssize_t last = 0;
  for (int i = 0; i < 10'000 && last >= 0; ++i) last = here_.send(std::span(much));
  EXPECT_LT(last, 0);
  EXPECT_EQ(errno, EAGAIN);
}

// An end in TLS that sends no word before its socket is closed may have been cut off by anyone.
TEST_P(StreamTest, AnEndWithoutAWordIsAnErrorInTls) {
  here_.close();
  Bytes room(10);
  const ssize_t count = there_.receive(room);
  const int error = errno;
  EXPECT_EQ(count, GetParam() ? -1 : 0);
  if (GetParam()) {
    EXPECT_NE(there_.describe_error(error), core::describe_errno(error));
  }
}

TEST_P(StreamTest, AnEndThatIsToldIsNoError) {
  here_.close_notify();
  here_.close();
  Bytes room(10);
  EXPECT_EQ(there_.receive(room), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, StreamTest, testing::Bool(),
                         [](const auto& tls) { return tls.param ? "Tls" : "Plain"; });

TEST(PlainStream, GivesItsSocketUp) {
  auto sockets = TlsPair::make_sockets();
  const int number = sockets.first.get();
  Stream stream(std::move(sockets.first));
  EXPECT_EQ(stream.fd(), number);
  EXPECT_EQ(stream.describe_error(EPIPE), core::describe_errno(EPIPE));
  EXPECT_EQ(stream.release().get(), number);
  EXPECT_FALSE(stream.valid());
}

volatile std::sig_atomic_t pipe_signals = 0;

TEST(PlainStream, ASendToAPeerThatIsGoneIsNoSignal) {
  auto sockets = TlsPair::make_sockets();
  Stream stream(std::move(sockets.first));
  sockets.second.reset();
  const auto before = std::signal(SIGPIPE, [](int) { pipe_signals = pipe_signals + 1; });
  Bytes bytes(1);
  iovec piece{bytes.data(), bytes.size()};
  EXPECT_EQ(stream.send(std::span(&piece, 1)), -1);
  EXPECT_EQ(stream.send(std::span<const std::byte>(bytes)), -1);
  std::signal(SIGPIPE, before);
  EXPECT_EQ(pipe_signals, 0);
}

/// A listener, and attempts to connect to it.
class Attempts : public testing::Test {
 protected:
  /// Advances the attempt when its event comes.
  static ConnectAttempt::State advance(ConnectAttempt& attempt) {
    pollfd event{attempt.fd(), static_cast<short>(attempt.events()), 0};
    EXPECT_EQ(::poll(&event, 1, 20'000), 1);
    return attempt.advance();
  }
  core::Fd accept() {
    pollfd event{listener_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&event, 1, 20'000), 1);
    return core::Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }

  core::Fd listener_ = listen_tcp(resolve("127.0.0.1", 0).front(), 8);
  SocketAddress address_ = local_address(listener_.get());
};

TEST_F(Attempts, APlainOneIsConnectedAtOnce) {
  ConnectAttempt attempt(address_, nullptr);
  EXPECT_EQ(attempt.error(), 0);
  const int fd = attempt.fd();
  EXPECT_EQ(attempt.events(), static_cast<std::uint32_t>(EPOLLOUT));
  EXPECT_EQ(advance(attempt), ConnectAttempt::State::connected);
  Stream stream = attempt.take();
  EXPECT_EQ(stream.fd(), fd);
  const core::Fd peer = accept();
  EXPECT_EQ(stream.send(support::bytes_of("hello")), 5);
  pollfd event{peer.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&event, 1, 20'000), 1);
}

TEST_F(Attempts, OneInTlsIsConnectedAfterItsHandshake) {
  const support::Authority authority("an authority");
  const auto context = TlsContext::server(authority.issue("server", "DNS:server.test"));
  const auto client = TlsContext::client("server.test", authority.ca_file());
  ConnectAttempt attempt(address_, &client);
  const int fd = attempt.fd();
  EXPECT_EQ(advance(attempt), ConnectAttempt::State::pending);
  EXPECT_EQ(attempt.fd(), fd);
  EXPECT_EQ(attempt.events(), static_cast<std::uint32_t>(EPOLLIN));
  Stream server(accept(), context);
  pollfd event{server.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&event, 1, 20'000), 1);
  EXPECT_EQ(server.handshake(), TlsHandshake::under_way);
  EXPECT_EQ(advance(attempt), ConnectAttempt::State::connected);
  EXPECT_TRUE(attempt.take().is_tls());
}

TEST_F(Attempts, OneToAPeerWithoutTlsSaysSo) {
  const support::Authority authority("an authority");
  const auto client = TlsContext::client("server.test", authority.ca_file());
  ConnectAttempt attempt(address_, &client);
  EXPECT_EQ(advance(attempt), ConnectAttempt::State::pending);
  const core::Fd peer = accept();
  ASSERT_EQ(::send(peer.get(), "HTTP/1.1 400\r\n", 14, MSG_NOSIGNAL), 14);
  EXPECT_EQ(advance(attempt), ConnectAttempt::State::failed);
  EXPECT_EQ(attempt.error(), EPROTO);
  EXPECT_TRUE(attempt.reason().ends_with("the peer does not use TLS")) << attempt.reason();
  EXPECT_TRUE(attempt.reason().starts_with("cannot use TLS with " + address_.to_string() + ": "))
      << attempt.reason();
}

TEST_F(Attempts, OneThatIsRefusedSaysSo) {
  listener_.reset();
  ConnectAttempt attempt(address_, nullptr);
  EXPECT_EQ(advance(attempt), ConnectAttempt::State::failed);
  EXPECT_EQ(attempt.error(), ECONNREFUSED);
  EXPECT_EQ(attempt.reason(), "cannot connect to " + address_.to_string() + ": " +
                                  core::describe_errno(ECONNREFUSED));
}

// TCP connects a socket to itself if both ends have one port.
TEST_F(Attempts, OneThatReachesItselfIsRefused) {
  const core::Fd self(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto any = resolve("127.0.0.1", 0).front();
  ASSERT_EQ(::bind(self.get(), any.get(), any.size), 0);
  const auto own = local_address(self.get());
  ASSERT_EQ(::connect(self.get(), own.get(), own.size), 0);
  EXPECT_TRUE(is_connected_to_itself(self.get(), own));
  EXPECT_FALSE(is_connected_to_itself(self.get(), address_));
}

}  // namespace
}  // namespace offload::net
