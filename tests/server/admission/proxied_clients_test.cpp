#include "apps/server/admission/proxied_clients.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/server/fixtures/client_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::server {
namespace {

constexpr std::size_t kPort = 3;
const std::string kHeader(
    "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\2\1\xc6\x33\x64\2\x12\x67\1\xbb", 28);

net::PeerAddress proxy_address() {
  sockaddr_storage storage{};
  storage.ss_family = AF_INET;
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  v4.sin_port = htons(99);
  return net::PeerAddress(storage);
}

/// A table, and the clients that it let go on.
class ProxiedClientsTest : public testing::Test {
 protected:
  struct Named {
    core::Fd socket;
    std::string client;
    std::size_t port;
  };

  void make(core::Duration time = ProxiedClients::kTime, std::size_t most = 4) {
    clients_.emplace(
        engine_, std::vector{*net::AddressRange::parse("127.0.0.0/8")},
        [this](core::Fd socket, const net::PeerAddress& client, std::size_t port) {
          named_.push_back({std::move(socket), std::string(std::string_view(client.text())), port});
        },
        time, most);
  }

  /// Returns the proxy's end of a connection that was added.
  core::Fd connect() {
    auto [proxy, server] = test::connected_sockets();
    clients_->add(std::move(server), proxy_address(), kPort);
    return std::move(proxy);
  }
  static void send(const core::Fd& proxy, std::string_view text) {
    test::send_all(proxy, std::as_bytes(std::span(text)));
  }

  template <class Condition>
  bool turn_until(Condition condition) {
    return support::eventually([&] {
      engine_.run_once(core::TimePoint{});
      clients_->close_late();
      return condition();
    });
  }
  void turn() {
    for (int i = 0; i < 3; ++i) engine_.run_once(core::TimePoint{});
  }
  static bool is_closed(const core::Fd& proxy) {
    char byte = 0;
    return ::recv(proxy.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  progress::Engine engine_;
  std::vector<Named> named_;
  std::optional<ProxiedClients> clients_;
};

TEST_F(ProxiedClientsTest, KnowsItsProxies) {
  make();
  EXPECT_TRUE(clients_->is_proxy(net::resolve("127.0.0.9", 1).front()));
  EXPECT_FALSE(clients_->is_proxy(net::resolve("10.0.0.1", 1).front()));
}

TEST_F(ProxiedClientsTest, TheClientBehindAHeaderGoesOnWithItsBytes) {
  make();
  const core::Fd proxy = connect();
  send(proxy, kHeader + "hello");
  ASSERT_TRUE(turn_until([&] { return !named_.empty(); }));
  EXPECT_EQ(named_[0].client, "192.0.2.1:4711");
  EXPECT_EQ(named_[0].port, kPort);
  std::array<char, 16> bytes{};
  EXPECT_EQ(::recv(named_[0].socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT), 5);
  EXPECT_STREQ(bytes.data(), "hello");
  EXPECT_EQ(clients_->deadline(), core::RunTime::max());
}

TEST_F(ProxiedClientsTest, AHeaderInPiecesIsWaitedFor) {
  make();
  const core::Fd proxy = connect();
  for (const char one : kHeader) {
    EXPECT_TRUE(named_.empty());
    send(proxy, std::string_view(&one, 1));
    turn();
  }
  EXPECT_TRUE(turn_until([&] { return named_.size() == 1; }));
}

TEST_F(ProxiedClientsTest, AProxyThatSpeaksForItselfIsTheClient) {
  make();
  const core::Fd proxy = connect();
  send(proxy, kHeader.substr(0, 12) + std::string("\x20\0\0\0", 4));
  ASSERT_TRUE(turn_until([&] { return !named_.empty(); }));
  EXPECT_EQ(named_[0].client, "127.0.0.1:99");
}

TEST_F(ProxiedClientsTest, AWrongHeaderClosesItsConnectionAlone) {
  make();
  const support::LogCapture log;
  const core::Fd wrong = connect();
  const core::Fd right = connect();
  send(wrong, "GET / HTTP/1.1\r\n");
  EXPECT_TRUE(turn_until([&] { return is_closed(wrong); }));
  EXPECT_TRUE(
      log.has("a connection of proxy 127.0.0.1:99 is closed: it does not begin with a PROXY"))
      << log.text();
  send(right, kHeader);
  EXPECT_TRUE(turn_until([&] { return named_.size() == 1; }));
}

TEST_F(ProxiedClientsTest, TheFirstByteMayBeWrong) {
  make();
  const core::Fd wrong = connect();
  send(wrong, "G");
  EXPECT_TRUE(turn_until([&] { return is_closed(wrong); }));
  const core::Fd right = connect();
  send(right, kHeader.substr(0, 1));
  turn();
  EXPECT_FALSE(is_closed(right));
}

TEST_F(ProxiedClientsTest, AConnectionThatEndsInItsHeaderIsClosed) {
  make();
  const support::LogCapture log;
  core::Fd part = connect();
  core::Fd nothing = connect();
  send(part, kHeader.substr(0, 20));
  turn();
  part.reset();
  nothing.reset();
  EXPECT_TRUE(turn_until([&] { return clients_->deadline() == core::RunTime::max(); }));
  EXPECT_TRUE(log.has("it ended in its PROXY header")) << log.text();
  EXPECT_TRUE(named_.empty());
}

TEST_F(ProxiedClientsTest, ALateHeaderClosesItsConnection) {
  make(std::chrono::milliseconds(20));
  const support::LogCapture log;
  const core::Fd late = connect();
  send(late, kHeader.substr(0, 27));
  EXPECT_TRUE(turn_until([&] { return is_closed(late); }));
  EXPECT_TRUE(log.has("its PROXY header did not arrive in time")) << log.text();
}

TEST_F(ProxiedClientsTest, OneMoreThanTheLimitClosesTheOldest) {
  make(ProxiedClients::kTime, 2);
  const core::Fd first = connect();
  const core::Fd second = connect();
  EXPECT_FALSE(is_closed(first) || is_closed(second));
  const core::Fd third = connect();
  EXPECT_TRUE(is_closed(first));
  send(second, kHeader);
  send(third, kHeader);
  EXPECT_TRUE(turn_until([&] { return named_.size() == 2; }));
}

}  // namespace
}  // namespace offload::server
