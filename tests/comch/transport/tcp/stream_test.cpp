#include "comch/transport/tcp/stream.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <vector>

#include "comch/keys/pre_shared_keys.hpp"
#include "core/error.hpp"
#include "protocol/frame.hpp"
#include "tests/comch/keys.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::ErrorCode;
using support::Bytes;
using support::random_bytes;
using test::keyring_of;

std::array<core::Fd, 2> socket_pair() {
  std::array<int, 2> fds{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
  return {core::Fd(fds[0]), core::Fd(fds[1])};
}

/// A server and a worker, and a relay between them that passes on what the test lets it.
class TlsStream : public testing::Test {
 protected:
  void start(std::shared_ptr<Keyring> servers, std::shared_ptr<Keyring> workers) {
    auto [at_server, server_side] = socket_pair();
    auto [at_worker, worker_side] = socket_pair();
    servers_ = std::move(servers);
    workers_ = std::move(workers);
    server_.emplace(std::move(at_server), server_context(*servers_));
    worker_.emplace(std::move(at_worker), worker_context(*workers_));
    to_server_ = std::move(server_side);
    to_worker_ = std::move(worker_side);
  }
  static Bytes drain(const core::Fd& from) {
    Bytes all(1 << 20);
    const auto received = ::recv(from.get(), all.data(), all.size(), 0);
    all.resize(received > 0 ? static_cast<std::size_t>(received) : 0);
    return all;
  }
  static void pass(const core::Fd& to, const Bytes& bytes) {
    if (bytes.empty()) return;
    ASSERT_EQ(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void relay() {
    pass(to_server_, drain(to_worker_));
    pass(to_worker_, drain(to_server_));
  }
  bool shake_hands() {
    for (int i = 0; i < 10; ++i) {
      const bool worker = worker_->handshake();
      relay();
      const bool server = server_->handshake();
      relay();
      if (worker && server) return true;
    }
    return false;
  }
  static ssize_t send(TcpStream& by, const Bytes& bytes) {
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    return by.send({&piece, 1});
  }
  static std::optional<Bytes> receive(TcpStream& by) {
    Bytes bytes(100'000);
    const auto received = by.receive(bytes);
    if (received < 0) return std::nullopt;
    bytes.resize(static_cast<std::size_t>(received));
    return bytes;
  }

  std::shared_ptr<Keyring> servers_;
  std::shared_ptr<Keyring> workers_;
  std::optional<TcpStream> server_;
  std::optional<TcpStream> worker_;
  core::Fd to_server_;
  core::Fd to_worker_;
};

TEST_F(TlsStream, CarriesBytesBothWaysThatARelayDoesNotSee) {
  start(keyring_of(1), keyring_of(1));
  ASSERT_TRUE(shake_hands());
  EXPECT_EQ(worker_->describe(), "TLS 1.3, by OpenSSL") << "the kernel's TLS is over TCP alone";
  const Bytes secret = random_bytes(1000, 1);
  ASSERT_EQ(send(*worker_, secret), 1000);
  const Bytes seen = drain(to_worker_);
  EXPECT_EQ(std::search(seen.begin(), seen.end(), secret.begin(), secret.begin() + 16), seen.end());
  pass(to_server_, seen);
  EXPECT_EQ(receive(*server_), secret);
  EXPECT_FALSE(receive(*server_));
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(send(*server_, secret), 1000);
  relay();
  EXPECT_EQ(receive(*worker_), secret);
}

TEST_F(TlsStream, AServerWithoutTlsIsNamed) {
  start(keyring_of(1), keyring_of(1));
  EXPECT_FALSE(worker_->handshake());
  pass(to_worker_, Bytes(20, std::byte{1}));
  const auto error = support::thrown_by([&] { worker_->handshake(); });
  EXPECT_EQ(error.code(), ErrorCode::connection_aborted);
  EXPECT_NE(std::string(error.what()).find("the peer does not use TLS: it is not the --comch"),
            std::string::npos)
      << error.what();
}

TEST_F(TlsStream, ManyPiecesAndLongOnesThroughASmallSocket) {
  start(keyring_of(1), keyring_of(1));
  ASSERT_TRUE(shake_hands());
  const Bytes all = random_bytes(3'000'000, 2);
  std::size_t sent = 0;
  Bytes came;
  for (int turn = 0; came.size() != all.size() && turn < 100'000; ++turn) {
    // Pieces of changing lengths, from the first byte that was not taken; empty ones too.
    std::vector<iovec> pieces;
    std::size_t at = sent;
    for (std::size_t length = 0; at != all.size() && pieces.size() < 64;
         length = (length * 7 + 13) % 40'000) {
      const std::size_t part = std::min(length, all.size() - at);
      pieces.push_back({const_cast<std::byte*>(all.data()) + at, part});
      at += part;
    }
    const auto taken = worker_->send(pieces);
    if (taken > 0) sent += static_cast<std::size_t>(taken);
    if (taken < 0) {
      ASSERT_EQ(errno, EAGAIN);
    }
    relay();
    while (const auto part = receive(*server_)) came.insert(came.end(), part->begin(), part->end());
  }
  EXPECT_TRUE(came == all);
}

TEST_F(TlsStream, ANewKeyAndAnOldOne) {
  for (const auto& workers : {keyring_of(1), keyring_of(2), keyring_of(1, 9)}) {
    start(keyring_of(1, 2), workers);
    EXPECT_EQ(names_a_key(server_->fd(), *servers_), std::nullopt) << "nothing has come";
    EXPECT_FALSE(worker_->handshake());
    relay();
    EXPECT_EQ(names_a_key(server_->fd(), *servers_), true);
    EXPECT_TRUE(shake_hands());
  }
}

TEST_F(TlsStream, APeerWithAnotherKey) {
  start(keyring_of(1), keyring_of(2));
  EXPECT_FALSE(worker_->handshake());
  relay();
  EXPECT_EQ(names_a_key(server_->fd(), *servers_), false);
  EXPECT_EQ(support::thrown_by([&] { server_->handshake(); }).code(), ErrorCode::not_permitted);
  relay();
  EXPECT_EQ(support::thrown_by([&] { worker_->handshake(); }).code(),
            ErrorCode::connection_aborted);
}

TEST_F(TlsStream, WhatIsNoTls) {
  start(keyring_of(1), keyring_of(1));
  pass(to_server_, support::copy_of(support::bytes_of("GET / HTTP/1.1\r\n\r\n")));
  EXPECT_EQ(names_a_key(server_->fd(), *servers_), false);
  pass(to_worker_, protocol::make_error_frame(protocol::Refusal::bad_hello, "go away"));
  const auto error = support::thrown_by([&] {
    worker_->handshake();
    worker_->handshake();
  });
  EXPECT_EQ(error.code(), ErrorCode::connection_aborted) << "anybody could have sent it";
}

TEST_F(TlsStream, AFirstMessageThatComesInParts) {
  start(keyring_of(1), keyring_of(1));
  worker_->handshake();
  const Bytes first = drain(to_worker_);
  ASSERT_GT(first.size(), 100U);
  const auto part = [&](std::size_t from, std::size_t to) {
    return Bytes(first.begin() + static_cast<std::ptrdiff_t>(from),
                 first.begin() + static_cast<std::ptrdiff_t>(to));
  };
  std::size_t at = 0;
  for (const std::size_t end : {std::size_t{1}, std::size_t{4}, std::size_t{5}, std::size_t{6},
                                std::size_t{100}, first.size() - 1}) {
    pass(to_server_, part(at, end));
    at = end;
    ASSERT_EQ(names_a_key(server_->fd(), *servers_), std::nullopt) << end;
  }
  pass(to_server_, part(at, first.size()));
  EXPECT_EQ(names_a_key(server_->fd(), *servers_), true);
  int low = 0;
  socklen_t size = sizeof low;
  ASSERT_EQ(::getsockopt(server_->fd(), SOL_SOCKET, SO_RCVLOWAT, &low, &size), 0);
  EXPECT_EQ(low, 1) << "those that follow are shorter, and have to wake the server too";
  EXPECT_TRUE(shake_hands());
}

TEST_F(TlsStream, AFirstMessageThatEndsTooSoon) {
  start(keyring_of(1), keyring_of(1));
  pass(to_server_, {std::byte{22}, std::byte{3}});
  EXPECT_EQ(names_a_key(server_->fd(), *servers_), std::nullopt);
  ASSERT_EQ(::shutdown(to_server_.get(), SHUT_WR), 0);
  EXPECT_EQ(names_a_key(server_->fd(), *servers_), false) << "the socket stays readable";
}

TEST_F(TlsStream, ChangedRepeatedOrInventedBytesEndIt) {
  for (int kind = 0; kind < 4; ++kind) {
    start(keyring_of(1), keyring_of(1));
    ASSERT_TRUE(shake_hands());
    send(*worker_, random_bytes(100, 3));
    Bytes first = drain(to_worker_);
    send(*worker_, random_bytes(100, 4));
    const Bytes second = drain(to_worker_);
    if (kind == 0) first[50] ^= std::byte{1};                               // rewritten
    if (kind == 1) std::copy(second.begin(), second.end(), first.begin());  // out of order
    if (kind >= 2) {
      pass(to_server_, first);
      EXPECT_TRUE(receive(*server_));
    }
    if (kind == 3) first.assign(first.size(), std::byte{23});  // injected; 2: replayed
    pass(to_server_, first);
    EXPECT_FALSE(receive(*server_)) << kind;
    EXPECT_EQ(errno, EPROTO) << kind;
    EXPECT_NE(server_->failure(errno).find("a third party is between"), std::string::npos);
    relay();
    EXPECT_FALSE(receive(*worker_)) << "it is told: " << kind;
    EXPECT_EQ(errno, EPROTO) << kind;
  }
}

TEST_F(TlsStream, AClientHelloThatIsReplayedProvesNothing) {
  start(keyring_of(1), keyring_of(1));
  worker_->handshake();
  const Bytes first = drain(to_worker_);
  start(keyring_of(1), keyring_of(1));
  pass(to_server_, first);
  EXPECT_FALSE(server_->handshake());
  EXPECT_FALSE(server_->handshake()) << "it waits for what only the key's holder can say";
}

TEST_F(TlsStream, ThePeersGoodbyeIsItsEnd) {
  start(keyring_of(1), keyring_of(1));
  ASSERT_TRUE(shake_hands());
  worker_.reset();
  relay();
  EXPECT_EQ(receive(*server_), Bytes{});
  EXPECT_EQ(server_->describe().substr(0, 7), "TLS 1.3");
}

TEST_F(TlsStream, APeerThatIsKilledIsNobodysAttack) {
  start(keyring_of(1), keyring_of(1));
  ASSERT_TRUE(shake_hands());
  ASSERT_EQ(::shutdown(to_server_.get(), SHUT_WR), 0);
  EXPECT_FALSE(receive(*server_));
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(server_->failure(ECONNRESET), core::describe_errno(ECONNRESET));
}

TEST_F(TlsStream, WithoutTlsItIsTheSocket) {
  auto [one, other] = socket_pair();
  TcpStream plain(std::move(one));
  EXPECT_TRUE(plain.handshake());
  const Bytes text = random_bytes(10, 5);
  EXPECT_EQ(send(plain, text), 10);
  EXPECT_EQ(drain(other), text);
  EXPECT_EQ(plain.describe(), "without encryption");
}

TEST(WaitFor, AnEventUntilATime) {
  auto [here, there] = socket_pair();
  const auto soon = core::Clock::now() + std::chrono::milliseconds(20);
  EXPECT_FALSE(wait_for(POLLIN, here.get(), soon));
  EXPECT_GE(core::Clock::now(), soon);
  const auto later = core::Clock::now() + std::chrono::seconds(20);
  EXPECT_TRUE(wait_for(POLLOUT, here.get(), later));
  EXPECT_FALSE(wait_for(POLLOUT, here.get(), soon)) << "the time is over";
}

TEST(PlainTcpStream, IsExchangedWithAnother) {
  auto [one, one_peer] = socket_pair();
  auto [other, other_peer] = socket_pair();
  const int number = one.get();
  TcpStream stream(std::move(one));
  TcpStream moved(std::move(other));
  moved = std::move(stream);
  EXPECT_EQ(moved.fd(), number);
  EXPECT_FALSE(moved.wants_to_send());
  EXPECT_EQ(moved.describe(), "without encryption");
}

}  // namespace
}  // namespace offload::comch
