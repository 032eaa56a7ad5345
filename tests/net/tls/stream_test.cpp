#include "net/tls/stream.hpp"

#include <openssl/ssl.h>

#include <array>
#include <optional>

#include "tests/net/tls/tls_pair.hpp"

namespace offload::net {
namespace {

using support::Bytes;
using support::bytes_of;
using support::random_bytes;

class TlsStreamTest : public testing::Test {
 protected:
  TlsStreamTest() { EXPECT_TRUE(pair_.connect()) << pair_.client.failure(); }

  const PreSharedKey key_{"key", random_bytes(32, 1)};
  TlsPair pair_{TlsContext::psk_server({key_}), TlsContext::psk_client(key_)};
  TlsStream& server_ = pair_.server;
  TlsStream& client_ = pair_.client;
  std::array<std::byte, 4096> room_{};
};

TEST_F(TlsStreamTest, BytesArriveBothWays) {
  for (const std::size_t size : {1U, 16383U, 16384U, 16385U, 1'000'000U}) {
    const auto bytes = random_bytes(size, 7);
    EXPECT_EQ(carry(client_, server_, bytes), bytes);
    EXPECT_EQ(carry(server_, client_, bytes), bytes);
  }
}

TEST_F(TlsStreamTest, PiecesOfAllSizesAreGathered) {
  auto bytes = random_bytes(100'000, 9);
  std::vector<iovec> pieces;
  std::size_t at = 0;
  for (const std::size_t size : {8UL, 0UL, 300UL, 8UL, 40'000UL, 8UL, 1UL, 20'000UL, 0UL}) {
    pieces.push_back({bytes.data() + at, size});
    at += size;
  }
  ASSERT_EQ(server_.send(pieces), static_cast<ssize_t>(at));
  Bytes received(bytes.size());
  ASSERT_EQ(client_.receive(received), static_cast<ssize_t>(at));
  received.resize(at);
  bytes.resize(at);
  EXPECT_EQ(received, bytes);
  EXPECT_EQ(client_.receive(room_), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(TlsStreamTest, SaysThatItHasMoreThanItHadRoomFor) {
  const auto bytes = random_bytes(room_.size() + 1, 3);
  ASSERT_EQ(server_.send(bytes), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(client_.receive(room_), static_cast<ssize_t>(room_.size()));
  EXPECT_TRUE(client_.has_pending());
  EXPECT_EQ(client_.receive(room_), 1);
  EXPECT_FALSE(client_.has_pending());
}

TEST_F(TlsStreamTest, ASendThatFailsCanLeaveWhatHasArrived) {
  for (const bool keeps : {false, true}) {
    TlsPair pair(TlsContext::psk_server({key_}), TlsContext::psk_client(key_));
    ASSERT_TRUE(pair.connect());
    if (keeps) pair.server.keep_receiving();
    ASSERT_EQ(pair.client.send(bytes_of("the last")), 8);
    ::shutdown(pair.sockets.second.get(), SHUT_RD);
    EXPECT_EQ(pair.server.send(bytes_of("x")), -1);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(pair.server.receive(room_), keeps ? 8 : -1);
    EXPECT_EQ(pair.server.send(bytes_of("x")), -1);
    EXPECT_EQ(pair.server.failure().empty(), keeps);
  }
}

TEST_F(TlsStreamTest, AFullSocketBlocksAndNothingIsLost) {
  const auto bytes = random_bytes(4'000'000, 5);
  std::size_t sent = 0;
  while (true) {
    const ssize_t count = server_.send(std::span(bytes).subspan(sent));
    if (count < 0) break;
    sent += static_cast<std::size_t>(count);
  }
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_TRUE(server_.wants_write());
  ASSERT_LT(sent, bytes.size());
  const auto received = carry(server_, client_, std::span(bytes).subspan(sent), sent);
  EXPECT_EQ(received.size(), bytes.size());
  EXPECT_TRUE(received == bytes);
}

TEST_F(TlsStreamTest, WhatWasNotTakenIsSentInAnyPieces) {
  const auto bytes = random_bytes(1'000'000, 6);
  std::span rest(bytes);
  Bytes received;
  Bytes room(bytes.size());
  for (std::size_t turn = 0; received.size() < bytes.size(); ++turn) {
    ASSERT_LT(turn, 100'000U);
    // Sends until it blocks, then in pieces of all sizes.
    const std::size_t longest = turn % 50 == 0 ? rest.size() : 1 + turn * 37 % 5000;
    const ssize_t count = server_.send(rest.first(std::min(rest.size(), longest)));
    if (count > 0) rest = rest.subspan(static_cast<std::size_t>(count));
    const ssize_t taken = client_.receive(std::span(room).first(10'000));
    if (taken > 0) received.insert(received.end(), room.begin(), room.begin() + taken);
  }
  EXPECT_TRUE(received == bytes);
}

TEST_F(TlsStreamTest, TheEndThatThePeerSays) {
  (void)client_.send(bytes_of("last words"));
  client_.close_notify();
  EXPECT_EQ(server_.receive(room_), 10);
  EXPECT_TRUE(server_.has_pending());  // the end, of which epoll knows nothing
  EXPECT_EQ(server_.receive(room_), 0);
  // The other way is still open.
  EXPECT_EQ(server_.send(bytes_of("answer")), 6);
  EXPECT_EQ(client_.receive(room_), 6);
}

TEST_F(TlsStreamTest, APeerThatLeavesAfterItsEnd) {
  client_.close_notify();
  EXPECT_EQ(server_.receive(room_), 0);
  pair_.sockets.second.reset();
  EXPECT_EQ(server_.send(bytes_of("answer")), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(TlsStreamTest, AnEndThatThePeerDidNotSayIsAFailure) {
  pair_.sockets.second.reset();
  EXPECT_EQ(server_.receive(room_), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_FALSE(server_.failure().empty());
  EXPECT_EQ(server_.send(bytes_of("x")), -1);
  EXPECT_EQ(errno, EPROTO);
}

TEST_F(TlsStreamTest, ARecordThatWasChangedOnItsWay) {
  (void)client_.send(bytes_of("hello"));
  std::array<char, 100> record{};
  const auto size = ::recv(pair_.sockets.first.get(), record.data(), record.size(), 0);
  ASSERT_GT(size, 10);
  record[static_cast<std::size_t>(size) - 1] ^= 1;
  ASSERT_EQ(::send(pair_.sockets.second.get(), record.data(), static_cast<std::size_t>(size), 0),
            size);
  EXPECT_EQ(server_.receive(room_), -1);
  EXPECT_EQ(errno, EPROTO);
  EXPECT_FALSE(server_.failure().empty());
  EXPECT_EQ(client_.receive(room_), -1);
  EXPECT_NE(client_.failure().find("the peer refused"), std::string::npos) << client_.failure();
}

TEST(TlsHandshakeTest, APeerThatDoesNotSpeakTls) {
  const PreSharedKey key{"key", random_bytes(32, 1)};
  auto sockets = TlsPair::make_sockets();
  TlsStream server(TlsContext::psk_server({key}), sockets.first.get());
  EXPECT_EQ(server.handshake(), TlsHandshake::under_way);
  ASSERT_EQ(::send(sockets.second.get(), "\0\0\0\1\0\0\0\5hello", 13, 0), 13);
  EXPECT_EQ(server.handshake(), TlsHandshake::failed);
  EXPECT_EQ(server.failure(), "the peer does not use TLS");
  EXPECT_TRUE(server.peer_is_plain());
  EXPECT_FALSE(server.peer_speaks_http());
}

TEST(TlsHandshakeTest, APeerThatSpeaksHttpIsSentNothing) {
  auto sockets = TlsPair::make_sockets();
  TlsStream server(TlsContext::psk_server({{"key", random_bytes(32, 1)}}), sockets.first.get());
  ASSERT_EQ(::send(sockets.second.get(), "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  EXPECT_EQ(server.handshake(), TlsHandshake::failed);
  EXPECT_TRUE(server.peer_is_plain());
  EXPECT_TRUE(server.peer_speaks_http());
  std::byte byte{};
  EXPECT_EQ(::recv(sockets.second.get(), &byte, 1, MSG_DONTWAIT), -1);
}

TEST(TlsHandshakeTest, APeerThatLeaves) {
  const PreSharedKey key{"key", random_bytes(32, 1)};
  auto sockets = TlsPair::make_sockets();
  TlsStream server(TlsContext::psk_server({key}), sockets.first.get());
  sockets.second.reset();
  EXPECT_EQ(server.handshake(), TlsHandshake::failed);
  EXPECT_FALSE(server.failure().empty());
}

/// A peer that renews its keys with each record, and has this end renew its own.
TEST(TlsRenewalTest, IsBounded) {
  const PreSharedKey key{"key", random_bytes(32, 1)};
  auto sockets = TlsPair::make_sockets();
  TlsStream server(TlsContext::psk_server({key}), sockets.first.get());
  const auto client = TlsContext::psk_client(key).make_ssl();
  ::SSL_set_fd(client.get(), sockets.second.get());
  for (int turn = 0; turn < 10; ++turn) {
    (void)::SSL_do_handshake(client.get());
    (void)server.handshake();
  }
  std::array<std::byte, 100> room{};
  int renewals = 0;
  ssize_t received = 0;
  for (; renewals < 10'000; ++renewals) {
    ASSERT_EQ(::SSL_key_update(client.get(), SSL_KEY_UPDATE_REQUESTED), 1);
    if (::SSL_write(client.get(), "x", 1) != 1) break;
    received = server.receive(room);
    if (received != 1) break;
    (void)::SSL_read(client.get(), room.data(), 1);  // takes the server's
  }
  EXPECT_LT(renewals, 2'000);
  EXPECT_GE(renewals, 1'000);
  EXPECT_EQ(received, -1);
  EXPECT_NE(server.failure().find("updates its keys too often"), std::string::npos)
      << server.failure();
}

}  // namespace
}  // namespace offload::net
