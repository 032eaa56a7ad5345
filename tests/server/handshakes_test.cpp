#include "apps/server/handshakes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

#include "net/socket.hpp"
#include "protocol/frame.hpp"
#include "protocol/other_protocols.hpp"
#include "tests/net/tls/tls_pair.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::server {
namespace {

using net::TlsContext;
using net::TlsHandshake;
using net::TlsStream;

class HandshakesTest : public testing::Test {
 protected:
  HandshakesTest() { handshakes_.set_context(TlsContext::psk_server({key_})); }

  /// Adds a server's end and returns its client's end.
  core::Fd add() { return add(handshakes_, "10.0.0.1"); }
  /// Does the same for a client of that address.
  static core::Fd add(Handshakes& to, const std::string& address) {
    auto [here, there] = net::TlsPair::make_sockets();
    Admission admission;
    admission.address = net::PeerAddress(net::resolve(address, 1).front().storage);
    to.add(std::move(here), std::move(admission));
    return std::move(there);
  }
  /// Returns recv(2)'s result for a client's socket: 0 if it was closed, -1 if nothing came.
  static ssize_t peek(const core::Fd& socket) {
    std::byte byte{};
    return ::recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  }
  /// Takes events and turns until there is nothing to do.
  void run() {
    do {
      engine_.run_once(engine_.now());
    } while (handshakes_.turn());
  }

  const net::PreSharedKey key_{"key", support::random_bytes(32, 1)};
  const TlsContext client_context_ = TlsContext::psk_client(key_);
  std::vector<net::Stream> done_;
  progress::Engine engine_;
  ThreadMetrics metrics_;
  Handshakes handshakes_{engine_, metrics_, [this](net::Stream stream, const Admission&) {
                           done_.push_back(std::move(stream));
                         }};
  /// Returns how many handshakes have failed, by their kind.
  [[nodiscard]] std::array<std::uint64_t, kHandshakeFailures.size()> failures() const {
    std::array<std::uint64_t, kHandshakeFailures.size()> counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = metrics_.tls_failures[i].value();
    return counts;
  }

  std::array<std::byte, 100> room_{};
};

using Failures = std::array<std::uint64_t, kHandshakeFailures.size()>;

TEST_F(HandshakesTest, AClientIsHandedOverOnceItIsDone) {
  const core::Fd socket = add();
  TlsStream client(client_context_, socket.get());
  for (int step = 0; step < 4 && done_.empty(); ++step) {
    (void)client.handshake();
    run();
  }
  ASSERT_EQ(done_.size(), 1U);
  EXPECT_EQ(handshakes_.size(), 0U);
  EXPECT_EQ(handshakes_.deadline(), core::RunTime::max());
  EXPECT_EQ(client.send(support::bytes_of("hello")), 5);
  EXPECT_EQ(done_[0].receive(room_), 5);
}

TEST_F(HandshakesTest, OneStepATurn) {
  std::vector<core::Fd> sockets;
  std::vector<std::unique_ptr<TlsStream>> clients;
  for (int i = 0; i < 5; ++i) {
    sockets.push_back(add());
    clients.push_back(std::make_unique<TlsStream>(client_context_, sockets.back().get()));
    (void)clients.back()->handshake();
  }
  engine_.run_once(engine_.now());
  int turns = 0;
  while (handshakes_.turn()) ++turns;
  EXPECT_EQ(turns, 5);
}

TEST_F(HandshakesTest, SourcesTakeTurns) {
  std::vector<core::Fd> sockets;
  std::vector<std::unique_ptr<TlsStream>> clients;
  const auto begin = [&](const std::string& address) {
    sockets.push_back(add(handshakes_, address));
    clients.push_back(std::make_unique<TlsStream>(client_context_, sockets.back().get()));
    std::ignore = clients.back()->handshake();
    engine_.run_once(engine_.now());
  };
  for (int i = 0; i < 20; ++i) begin("10.0.0.1");
  begin("10.0.0.2");
  EXPECT_LT(peek(sockets.back()), 0);
  EXPECT_TRUE(handshakes_.turn());
  EXPECT_TRUE(handshakes_.turn());
  EXPECT_GT(peek(sockets.back()), 0);
}

TEST_F(HandshakesTest, TheSourceThatHasTheMostMakesRoom) {
  const support::LogCapture log;
  const std::uint64_t limited = net::limited_sources.count(net::Door::tls);
  Handshakes few{engine_, metrics_, [](net::Stream, const Admission&) {}, Handshakes::kTime, 4};
  few.set_context(TlsContext::psk_server({key_}));
  std::vector<core::Fd> flood;
  const core::Fd first = add(few, "10.0.0.2");
  for (std::size_t i = 0; i < 20; ++i) {
    flood.push_back(add(few, "10.0.0.1"));
    EXPECT_EQ(few.size(), std::min<std::size_t>(i + 2, 4)) << "only one makes room for another";
  }
  const core::Fd last = add(few, "10.0.0.3");
  EXPECT_EQ(few.size(), 4U);
  EXPECT_EQ(few.held(), 4 * Handshakes::kMemory);
  EXPECT_LT(peek(first), 0);
  EXPECT_LT(peek(last), 0);
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(peek(flood[i]), 0) << i;
  EXPECT_LT(peek(flood[18]), 0);
  EXPECT_LT(peek(flood[19]), 0);
  EXPECT_EQ(net::limited_sources.count(net::Door::tls) - limited, 18U);
  const std::string text = log.text();
  EXPECT_LT(std::ranges::count(text, '\n'), 9) << "one a second";
  EXPECT_TRUE(log.has("10.0.0.1:1, is disconnected in its TLS handshake to make room for another"))
      << log.text();
}

// Its peer has done its part, and waits for this end.
TEST_F(HandshakesTest, OneThatIsReadyMakesRoomAfterThoseThatWaitForTheirPeer) {
  Handshakes few{engine_, metrics_, [](net::Stream, const Admission&) {}, Handshakes::kTime, 2};
  few.set_context(TlsContext::psk_server({key_}));
  const core::Fd ready = add(few, "10.0.0.1");
  const core::Fd silent = add(few, "10.0.0.1");
  engine_.run_once(engine_.now());
  while (few.turn()) continue;  // both could be written to: the first event of all
  TlsStream client(client_context_, ready.get());
  std::ignore = client.handshake();
  engine_.run_once(engine_.now());
  const core::Fd last = add(few, "10.0.0.1");
  EXPECT_EQ(peek(silent), 0);
  EXPECT_LT(peek(ready), 0);
}

TEST_F(HandshakesTest, OneThatFailsIsToldWhyAndLeftToClose) {
  const core::Fd socket = add();
  TlsStream client(TlsContext::psk_client({"key", support::random_bytes(32, 2)}), socket.get());
  (void)client.handshake();
  const support::LogCapture log;
  run();
  EXPECT_TRUE(done_.empty());
  EXPECT_EQ(failures(), (Failures{0, 0, 0, 0, 1}));
  EXPECT_TRUE(log.has("the TLS handshake failed: ")) << log.text();
  EXPECT_EQ(handshakes_.size(), 1U);
  EXPECT_LT(handshakes_.deadline(), engine_.run_time() + std::chrono::seconds(2));
  EXPECT_EQ(client.handshake(), TlsHandshake::failed);
  EXPECT_NE(client.failure().find("the peer refused"), std::string::npos) << client.failure();
  EXPECT_EQ(peek(socket), 0) << "nothing follows that is no TLS";
  ::shutdown(socket.get(), SHUT_RDWR);
  run();
  EXPECT_EQ(handshakes_.size(), 0U);
}

TEST_F(HandshakesTest, OneThatDoesNotUseTlsIsToldInItsOwnProtocol) {
  const auto answer_to = [&](std::string_view text) {
    const core::Fd socket = add();
    EXPECT_EQ(::send(socket.get(), text.data(), text.size(), 0), std::ssize(text));
    run();
    std::array<char, 512> answer{};
    const ssize_t size = ::recv(socket.get(), answer.data(), answer.size(), MSG_DONTWAIT);
    EXPECT_EQ(peek(socket), 0) << "nothing follows";
    return std::string(answer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  };
  std::array<std::byte, protocol::kErrorFrameRoom> frame{};
  const std::size_t size =
      protocol::store_error_frame(frame.data(), protocol::Refusal::tls_required);
  EXPECT_EQ(answer_to({"\0\0\0\x11\0\0\0\4\0\0\0\5hello", 17}),
            std::string(reinterpret_cast<const char*>(frame.data()), size));
  EXPECT_EQ(answer_to("GET / HTTP/1.1\r\n\r\n"), protocol::kHttpRefusal);
  EXPECT_EQ(failures(), (Failures{0, 0, 2, 0, 0}));
}

// It has been told: what it still sends is dropped, but not without end.
TEST_F(HandshakesTest, OneThatFailsAndGoesOnSendingIsClosed) {
  const core::Fd socket = add();
  const std::string_view text = "GET / HTTP/1.1\r\n\r\n";
  EXPECT_EQ(::send(socket.get(), text.data(), text.size(), 0), std::ssize(text));
  run();
  EXPECT_EQ(handshakes_.size(), 1U);
  EXPECT_EQ(::send(socket.get(), "x", 1, 0), 1);
  run();
  EXPECT_EQ(handshakes_.size(), 1U) << "a byte is not the end";
  const support::Bytes flood(std::size_t{4} * 16384);
  EXPECT_EQ(::send(socket.get(), flood.data(), flood.size(), 0), std::ssize(flood));
  run();
  EXPECT_EQ(handshakes_.size(), 0U);
}

TEST_F(HandshakesTest, OneThatHasSentAFloodAlreadyIsClosedAtOnce) {
  const core::Fd socket = add();
  const support::Bytes flood(std::size_t{5} * 16384, std::byte{'x'});
  EXPECT_EQ(::send(socket.get(), flood.data(), flood.size(), 0), std::ssize(flood));
  run();
  EXPECT_EQ(handshakes_.size(), 0U);
  EXPECT_EQ(failures(), (Failures{0, 0, 1, 0, 0}));
}

TEST_F(HandshakesTest, ACertificateThatIsRefusedIsCountedByItsReason) {
  const support::Authority authority("an authority");
  const support::Authority stranger("a stranger");
  const auto own = authority.issue("server", "DNS:server.test");
  const auto revoked = authority.issue("revoked", "DNS:client.test");
  handshakes_.set_context(TlsContext::server(own, authority.ca_file(), authority.revoke({2})));
  const auto fail_with = [&](const net::TlsCertificate& certificate) {
    const core::Fd socket = add();
    TlsStream client(TlsContext::client("server.test", authority.ca_file(), certificate),
                     socket.get());
    for (int step = 0; step < 4; ++step) {
      std::ignore = client.handshake();
      run();
    }
  };
  fail_with(stranger.issue("client", "DNS:client.test"));
  EXPECT_EQ(failures(), (Failures{0, 1, 0, 0, 0}));
  fail_with(revoked);
  EXPECT_EQ(failures(), (Failures{1, 1, 0, 0, 0}));
}

TEST_F(HandshakesTest, OneThatFailsAndStaysIsClosed) {
  const core::Fd socket = add();
  TlsStream client(TlsContext::psk_client({"key", support::random_bytes(32, 2)}), socket.get());
  (void)client.handshake();
  run();
  ASSERT_EQ(handshakes_.size(), 1U);
  EXPECT_TRUE(support::eventually([&] { return run(), handshakes_.size() == 0; }));
  EXPECT_EQ(handshakes_.deadline(), core::RunTime::max());
}

TEST_F(HandshakesTest, OneThatWaitsHasADeadline) {
  const core::Fd socket = add();
  run();
  EXPECT_EQ(handshakes_.size(), 1U);
  EXPECT_LT(handshakes_.deadline(), engine_.run_time() + std::chrono::seconds(11));
  EXPECT_FALSE(handshakes_.turn());
}

TEST_F(HandshakesTest, OneThatDoesNotGoOnIsClosed) {
  const support::LogCapture log;
  Handshakes hasty{engine_, metrics_, [](net::Stream, const Admission&) { ADD_FAILURE(); },
                   std::chrono::milliseconds(20)};
  hasty.set_context(TlsContext::psk_server({key_}));
  auto [here, there] = net::TlsPair::make_sockets();
  hasty.add(std::move(here));
  bool worked = false;
  EXPECT_TRUE(support::eventually(
      [&] {
        worked = hasty.turn();
        return hasty.size() == 0;
      },
      [&] { engine_.run_once(engine_.when(hasty.deadline())); }));
  std::byte byte{};
  EXPECT_EQ(::recv(there.get(), &byte, 1, 0), 0);
  EXPECT_TRUE(worked);
  EXPECT_EQ(failures(), (Failures{0, 0, 0, 1, 0}));
  EXPECT_TRUE(log.has("failed: it did not finish in time")) << log.text();
}

}  // namespace
}  // namespace offload::server
