#include "net/tls/stream.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/ioctl.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "tests/net/tls/tls_pair.hpp"

namespace offload::net {
namespace {

using support::Bytes;
using support::bytes_of;
using support::random_bytes;

/// Returns the number of bytes that wait in a socket.
int bytes_in(int socket) {
  int bytes = -1;
  ::ioctl(socket, FIONREAD, &bytes);
  return bytes;
}

/// The bytes that a record of TLS 1.3 adds to its content: a header, the kind, and the tag.
constexpr int kRecordOverhead = 5 + 1 + 16;

class TlsStreamTest : public LeavesNoErrors {
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

TEST_F(TlsStreamTest, PiecesShareRecords) {
  auto bytes = random_bytes(20'000, 9);
  const std::array<iovec, 4> short_ones{iovec{bytes.data(), 8}, iovec{bytes.data() + 8, 300},
                                        iovec{nullptr, 0}, iovec{bytes.data() + 308, 8}};
  ASSERT_EQ(server_.send(short_ones), 316);
  EXPECT_EQ(bytes_in(pair_.sockets.second.get()), 316 + kRecordOverhead);
  EXPECT_EQ(client_.receive(room_), 316);
  const std::array<iovec, 2> long_ones{iovec{bytes.data(), 10'000},
                                       iovec{bytes.data() + 10'000, 10'000}};
  ASSERT_EQ(server_.send(long_ones), 20'000);
  EXPECT_EQ(bytes_in(pair_.sockets.second.get()), 20'000 + 2 * kRecordOverhead);
}

TEST_F(TlsStreamTest, NothingIsSentForNoBytes) {
  const std::array<iovec, 2> pieces{};
  EXPECT_EQ(server_.send(pieces), 0);
  EXPECT_EQ(bytes_in(pair_.sockets.second.get()), 0);
}

/// Leaves an error in OpenSSL's queue, as another user of it may.
void leave_error() {
  ::ERR_new();
  ::ERR_set_error(ERR_LIB_USER, 1, nullptr);
}

TEST_F(TlsStreamTest, ErrorsThatOthersLeftDoNoHarm) {
  TlsPair pair(TlsContext::psk_server({key_}), TlsContext::psk_client(key_));
  auto here = TlsHandshake::under_way;
  auto there = TlsHandshake::under_way;
  for (int turn = 0; turn < 10; ++turn) {
    leave_error();
    if (there == TlsHandshake::under_way) there = pair.client.handshake();
    leave_error();
    if (here == TlsHandshake::under_way) here = pair.server.handshake();
  }
  ASSERT_EQ(here, TlsHandshake::done);
  ASSERT_EQ(there, TlsHandshake::done);
  leave_error();
  EXPECT_EQ(pair.server.receive(room_), -1);
  EXPECT_EQ(errno, EAGAIN);
  const Bytes much(100'000);
  for (int i = 0; i < 1'000; ++i) {  // until the socket is full, and then again
    leave_error();
    if (pair.server.send(much) < 0) {
      EXPECT_EQ(errno, EAGAIN);
    }
  }
  EXPECT_EQ(pair.server.failure(), "");
  ::ERR_clear_error();
}

TEST_F(TlsStreamTest, StartsWithoutAFailure) {
  const TlsStream stream(TlsContext::psk_client(key_), pair_.sockets.first.get());
  EXPECT_EQ(stream.failure(), "");
  EXPECT_EQ(stream.certificate_error(), 0);
  EXPECT_FALSE(stream.peer_is_plain());
  EXPECT_FALSE(stream.has_pending());
  EXPECT_FALSE(stream.kernel_sends());
  EXPECT_FALSE(server_.kernel_sends()) << "the kernel encrypts over TCP alone";
  EXPECT_FALSE(server_.kernel_receives());
  EXPECT_FALSE(server_.has_pending());
}

TEST_F(TlsStreamTest, DataBehindTheHandshakeIsPending) {
  TlsPair pair(TlsContext::psk_server({key_}), TlsContext::psk_client(key_));
  EXPECT_EQ(pair.client.handshake(), TlsHandshake::under_way);
  EXPECT_EQ(pair.server.handshake(), TlsHandshake::under_way);
  EXPECT_EQ(pair.client.handshake(), TlsHandshake::done);
  ASSERT_EQ(pair.client.send(bytes_of("early")), 5);
  EXPECT_EQ(pair.server.handshake(), TlsHandshake::done);
  EXPECT_TRUE(pair.server.has_pending());
  EXPECT_EQ(pair.server.receive(room_), 5);
}

TEST_F(TlsStreamTest, MayHaveMoreAfterASingleByte) {
  ASSERT_EQ(server_.send(bytes_of("hello")), 5);
  EXPECT_EQ(client_.receive(std::span(room_).first(1)), 1);
  EXPECT_TRUE(client_.has_pending());
}

TEST_F(TlsStreamTest, ARecordOfAnotherVersionAfterTheHandshakeIsNoPlainPeer) {
  ASSERT_EQ(::send(pair_.sockets.second.get(), "\0\0\0\1\0\0\0\5hello", 13, 0), 13);
  EXPECT_EQ(server_.receive(room_), -1);
  EXPECT_EQ(errno, EPROTO);
  EXPECT_NE(server_.failure(), "");
  EXPECT_FALSE(server_.peer_is_plain());
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
    EXPECT_EQ(errno, keeps ? EPIPE : EPROTO);
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
  EXPECT_EQ(server_.send(std::span(bytes).subspan(sent, 1)), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(server_.failure(), "");
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
    const auto some = rest.first(std::min(rest.size(), longest));
    const ssize_t count = server_.send(some);
    ASSERT_LE(count, static_cast<ssize_t>(some.size()));
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

TEST_F(TlsStreamTest, APeerThatLeavesARecordUnfinished) {
  const Bytes much(1'000'000);
  while (server_.send(much) >= 0) continue;
  ASSERT_EQ(errno, EAGAIN);
  pair_.sockets.second.reset();
  EXPECT_EQ(server_.send(much), -1);
  EXPECT_NE(server_.failure(), "");
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

using TlsHandshakeTest = LeavesNoErrors;

TEST_F(TlsHandshakeTest, AServerThatDoesNotSpeakTls) {
  auto sockets = TlsPair::make_sockets();
  TlsStream client(TlsContext::psk_client({"key", random_bytes(32, 1)}), sockets.second.get());
  EXPECT_EQ(client.handshake(), TlsHandshake::under_way);
  ASSERT_EQ(::send(sockets.first.get(), "\0\0\0\1\0\0\0\5hello", 13, 0), 13);
  EXPECT_EQ(client.handshake(), TlsHandshake::failed);
  EXPECT_EQ(errno, EPROTO);
  EXPECT_EQ(client.failure(), "the peer does not use TLS");
  EXPECT_TRUE(client.peer_is_plain());
}

TEST_F(TlsHandshakeTest, APeerThatEndsIt) {
  auto sockets = TlsPair::make_sockets();
  TlsStream server(TlsContext::psk_server({{"key", random_bytes(32, 1)}}), sockets.first.get());
  // An alert (21) of TLS 1.2, as all are before the keys: a warning (1), close_notify (0).
  ASSERT_EQ(::send(sockets.second.get(), "\x15\x03\x03\0\2\1\0", 7, 0), 7);
  EXPECT_EQ(server.handshake(), TlsHandshake::failed);
  EXPECT_NE(server.failure(), "");
  EXPECT_EQ(server.handshake(), TlsHandshake::failed);
}

TEST_F(TlsHandshakeTest, APeerThatDoesNotSpeakTls) {
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

TEST_F(TlsHandshakeTest, APeerThatSpeaksHttpIsSentNothing) {
  auto sockets = TlsPair::make_sockets();
  TlsStream server(TlsContext::psk_server({{"key", random_bytes(32, 1)}}), sockets.first.get());
  ASSERT_EQ(::send(sockets.second.get(), "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  EXPECT_EQ(server.handshake(), TlsHandshake::failed);
  EXPECT_TRUE(server.peer_is_plain());
  EXPECT_TRUE(server.peer_speaks_http());
  std::byte byte{};
  EXPECT_EQ(::recv(sockets.second.get(), &byte, 1, MSG_DONTWAIT), -1);
}

TEST_F(TlsHandshakeTest, APeerThatLeaves) {
  const PreSharedKey key{"key", random_bytes(32, 1)};
  auto sockets = TlsPair::make_sockets();
  TlsStream server(TlsContext::psk_server({key}), sockets.first.get());
  sockets.second.reset();
  EXPECT_EQ(server.handshake(), TlsHandshake::failed);
  EXPECT_FALSE(server.failure().empty());
}

/// A peer that renews its keys with each record.
class TlsRenewalTest : public LeavesNoErrors {
 protected:
  static constexpr int kMost = 1024;

  TlsRenewalTest() {
    ::SSL_set_fd(client_.get(), sockets_.second.get());
    for (int turn = 0; turn < 10; ++turn) {
      (void)::SSL_do_handshake(client_.get());
      (void)server_.handshake();
    }
  }
  /// Renews the keys, and sends a byte.
  bool renew(int kind) {
    return ::SSL_key_update(client_.get(), kind) == 1 && ::SSL_write(client_.get(), "x", 1) == 1;
  }
  void expect_refusal() {
    EXPECT_EQ(errno, EPROTO);
    EXPECT_EQ(server_.failure(), "the peer updates its keys too often");
  }

  const PreSharedKey key_{"key", random_bytes(32, 1)};
  std::pair<core::Fd, core::Fd> sockets_ = TlsPair::make_sockets();
  TlsStream server_{TlsContext::psk_server({key_}), sockets_.first.get()};
  std::unique_ptr<SSL, TlsContext::FreeSsl> client_ = TlsContext::psk_client(key_).make_ssl();
  std::array<std::byte, 4096> room_{};
};

TEST_F(TlsRenewalTest, IsBounded) {
  for (int renewals = 0; renewals < kMost; ++renewals) {
    ASSERT_TRUE(renew(SSL_KEY_UPDATE_NOT_REQUESTED));
    ASSERT_EQ(server_.receive(room_), 1) << renewals;
  }
  ASSERT_TRUE(renew(SSL_KEY_UPDATE_NOT_REQUESTED));
  EXPECT_EQ(server_.receive(room_), -1);
  expect_refusal();
}

TEST_F(TlsRenewalTest, IsBoundedIfThisEndHasToRenewItsOwnToo) {
  for (int renewals = 0; renewals < kMost; ++renewals) {
    ASSERT_TRUE(renew(SSL_KEY_UPDATE_REQUESTED));
    ASSERT_EQ(server_.receive(room_), 1) << renewals;
    (void)::SSL_read(client_.get(), room_.data(), 1);  // takes the server's
  }
  ASSERT_TRUE(renew(SSL_KEY_UPDATE_REQUESTED));
  EXPECT_EQ(server_.receive(room_), -1);
  expect_refusal();
}

// They cost time, which a single call must not spend on all that a socket holds.
TEST_F(TlsRenewalTest, EndsACall) {
  Bytes sent;
  for (int renewals = 0; renewals < 3 * kMost; ++renewals) {
    ASSERT_TRUE(renew(SSL_KEY_UPDATE_NOT_REQUESTED));
    const auto size = ::recv(sockets_.first.get(), room_.data(), room_.size(), 0);
    ASSERT_GT(size, 0);
    sent.insert(sent.end(), room_.begin(), room_.begin() + size);
  }
  // In one piece a socket holds more.
  ASSERT_EQ(::send(sockets_.second.get(), sent.data(), sent.size(), 0),
            static_cast<ssize_t>(sent.size()));
  ssize_t received = 0;
  while (received >= 0) received = server_.receive(room_);
  expect_refusal();
  EXPECT_GT(bytes_in(sockets_.first.get()), 0);
}

}  // namespace
}  // namespace offload::net
