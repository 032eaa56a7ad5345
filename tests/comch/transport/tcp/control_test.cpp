#include "comch/transport/tcp/control.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <future>
#include <string>
#include <vector>

#include "comch/transport/tcp/stream_connection.hpp"
#include "core/error.hpp"
#include "tests/comch/keys.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::ErrorCode;
using protocol::MessageId;
using support::bytes_of;
using support::thrown_by;

Address loopback() {
  return test::address_with("tcp:127.0.0.1:0", test::keyring_of(7));
}

/// A control connection, and the peer's socket.
class TcpControl : public testing::Test {
 protected:
  TcpControl() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
    connection_ = std::make_unique<StreamControlConnection>(TcpStream(core::Fd(fds[0])), nullptr);
    peer_ = core::Fd(fds[1]);
  }
  void write(std::span<const std::byte> bytes) {
    ASSERT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  ErrorCode failure_of_receive() {
    return thrown_by([this] { connection_->receive(); }).code();
  }

  std::unique_ptr<NetworkControlConnection> connection_;
  core::Fd peer_;
};

TEST_F(TcpControl, MessagesHoweverTheStreamCutsThem) {
  const auto frame = protocol::make_frame(MessageId::hello, bytes_of("hello"));
  support::Bytes two = frame;
  two.insert(two.end(), frame.begin(), frame.end());
  for (std::size_t cut = 0; cut <= two.size(); ++cut) {
    write(std::span(two).first(cut));
    int came = 0;
    while (connection_->receive()) ++came;
    EXPECT_EQ(came, static_cast<int>(cut / frame.size()));
    write(std::span(two).subspan(cut));
    while (const auto message = connection_->receive()) {
      EXPECT_EQ(message->payload, support::copy_of(bytes_of("hello")));
      ++came;
    }
    EXPECT_EQ(came, 2);
  }
}

TEST_F(TcpControl, WhyAChannelIsNotAttachedIsTold) {
  write(protocol::make_error_frame(protocol::Refusal::busy, "no RDMA device has the address"));
  const auto error =
      thrown_by([&] { static_cast<void>(connection_->request_data_endpoint({3}, 4)); });
  EXPECT_EQ(error.code(), ErrorCode::bad_message);
  EXPECT_EQ(std::string(error.what()),
            "the server does not attach channel 3: no RDMA device has the address");
}

// TLS and the greeting are the same over both.
TEST_F(TcpControl, APeerOverRdmaIsToldApart) {
  write(protocol::make_frame(MessageId::channel_attached, bytes_of("a queue pair")));
  const auto error =
      thrown_by([&] { static_cast<void>(connection_->request_data_endpoint({3}, 4)); });
  EXPECT_EQ(error.code(), ErrorCode::bad_message);
  EXPECT_NE(std::string(error.what()).find("the same --comch"), std::string::npos) << error.what();
}

TEST_F(TcpControl, ARefusalIsAsLongAsAMessageMayBe) {
  connection_->refuse(protocol::Refusal::busy, std::string(2 * protocol::kMaxControlLength, 'x'));
  std::array<std::byte, 2 * protocol::kMaxControlLength> bytes{};
  const ssize_t count = ::recv(peer_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  ASSERT_GT(count, 0);
  const auto frame = protocol::parse_frame(std::span(bytes).first(static_cast<std::size_t>(count)),
                                           protocol::kMaxControlLength);
  EXPECT_EQ(frame.state, protocol::FrameView::State::complete);
}

TEST_F(TcpControl, WhatIsNoFrame) {
  write(bytes_of("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(failure_of_receive(), ErrorCode::bad_message);
}

TEST_F(TcpControl, AMessageThatIsTooLong) {
  write(protocol::make_frame(MessageId::hello, support::Bytes(protocol::kMaxControlLength + 1)));
  EXPECT_EQ(failure_of_receive(), ErrorCode::bad_message);
}

TEST_F(TcpControl, APeerThatLeaves) {
  write(protocol::make_frame(MessageId::shutdown_complete, {}));
  peer_ = {};
  EXPECT_TRUE(connection_->receive());
  EXPECT_EQ(failure_of_receive(), ErrorCode::connection_reset);
  EXPECT_EQ(thrown_by([&] { connection_->send(MessageId::keep_alive, {}); }).code(),
            ErrorCode::connection_reset);
  connection_->refuse(protocol::Refusal::busy, "never thrown");
}

TEST_F(TcpControl, APeerThatDoesNotRead) {
  const auto error = thrown_by([&] {
    for (int i = 0; i < 100'000; ++i) connection_->send(MessageId::hello, support::Bytes(1000));
  });
  EXPECT_EQ(error.code(), ErrorCode::timed_out);
}

TEST_F(TcpControl, WaitsForAMessageNoLongerThanTheHandshakeTime) {
  EXPECT_EQ(thrown_by([&] { connection_->await(); }).code(), ErrorCode::timed_out);
}

TEST_F(TcpControl, ADataEndpointTakesNoDescriptor) {
  protocol::AttachChannel request{0};
  request.endpoint = support::Bytes(1);
  const auto error =
      thrown_by([&] { static_cast<void>(connection_->grant_data_endpoint(request, 4)); });
  EXPECT_EQ(error.code(), ErrorCode::bad_message);
}

TEST_F(TcpControl, NothingComesBeforeADataEndpointIsGranted) {
  write(protocol::make_frame(MessageId::hello, {}));
  write(protocol::make_frame(MessageId::hello, {}));
  EXPECT_TRUE(connection_->receive());
  const auto error = thrown_by(
      [&] { static_cast<void>(connection_->grant_data_endpoint(protocol::AttachChannel{0}, 4)); });
  EXPECT_EQ(error.code(), ErrorCode::bad_message);
}

std::unique_ptr<ControlConnection> connect_while(Listener& listener, const Address& address,
                                                 std::unique_ptr<ControlConnection>& server) {
  auto client = std::async(std::launch::async, [&] { return connect_tcp(address); });
  EXPECT_TRUE(support::eventually([&] {
    if (!server) server = listener.accept();
    if (server) {
      EXPECT_FALSE(server->receive());
    }
    return client.wait_for(core::Duration::zero()) == std::future_status::ready;
  }));
  return client.get();
}

TEST(TcpListener, TellsThePortThatItHas) {
  const auto listener = listen_tcp(loopback());
  EXPECT_NE(listener->address().port, 0);
  EXPECT_EQ(listener->accept(), nullptr);
  std::unique_ptr<ControlConnection> server;
  const auto client = connect_while(*listener, listener->address(), server);
  EXPECT_EQ(client->peer_name(), "127.0.0.1:" + std::to_string(listener->address().port));
  client->send(MessageId::hello, bytes_of("x"));
  EXPECT_EQ(server->await().id, MessageId::hello);
  EXPECT_TRUE(server->proven());
  EXPECT_EQ(server->source().host(), "127.0.0.1");
}

TEST(TcpListener, InsecureItHasNoTls) {
  Address address = Address::parse("tcp:127.0.0.1:0");
  address.insecure = true;
  const auto listener = listen_tcp(address);
  const auto client = connect_tcp(listener->address());
  std::unique_ptr<ControlConnection> server;
  ASSERT_TRUE(support::eventually([&] { return (server = listener->accept()) != nullptr; }));
  const auto frame = protocol::make_frame(MessageId::hello, bytes_of("x"));
  client->send(MessageId::hello, bytes_of("x"));
  support::Bytes seen(frame.size());
  ASSERT_TRUE(support::eventually([&] {
    return ::recv(server->fd(), seen.data(), seen.size(), 0) == static_cast<ssize_t>(seen.size());
  }));
  EXPECT_EQ(seen, frame);
  const auto another =
      dynamic_cast<NetworkControlConnection&>(*client).connect_another(listener->address());
  EXPECT_TRUE(support::eventually([&] { return listener->accept() != nullptr; }));
}

// The name in the address may be that of several servers.
TEST(TcpListener, AnotherConnectionIsToTheSameServer) {
  Address address = Address::parse("tcp:127.0.0.1:0");
  address.insecure = true;
  const auto listener = listen_tcp(address);
  const auto other = listen_tcp(address);
  const auto client = connect_tcp(listener->address());
  std::unique_ptr<ControlConnection> server;
  ASSERT_TRUE(support::eventually([&] { return (server = listener->accept()) != nullptr; }));
  const auto another =
      dynamic_cast<NetworkControlConnection&>(*client).connect_another(other->address());
  EXPECT_TRUE(support::eventually([&] { return listener->accept() != nullptr; }));
  EXPECT_EQ(other->accept(), nullptr);
}

TEST(TcpListener, ASourceWithManyConnectionsKeepsNoOtherWaiting) {
  Address address = Address::parse("tcp:127.0.0.1:0");
  address.insecure = true;
  const auto listener = listen_tcp(address);
  const auto connect_from = [&](const std::string& source) {
    core::Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto from = net::resolve(source, 0).front();
    const auto to = net::resolve("127.0.0.1", listener->address().port).front();
    EXPECT_EQ(::bind(client.get(), from.get(), from.size), 0);
    EXPECT_EQ(::connect(client.get(), to.get(), to.size), 0);
    return client;
  };
  std::vector<core::Fd> clients;
  while (clients.size() < 100) clients.push_back(connect_from("127.0.0.2"));
  clients.push_back(connect_from("127.0.0.3"));
  std::vector<std::string> taken;
  listener->set_admission([&](const net::SocketAddress& peer) {
    taken.push_back(peer.host());
    return true;
  });
  EXPECT_NE(listener->accept(), nullptr);
  EXPECT_NE(listener->accept(), nullptr);
  EXPECT_NE(std::ranges::find(taken, "127.0.0.3"), taken.end());
}

// A peer whose machine is gone sends no reset.
TEST(TcpListener, BothEndsNoticeADeadPeer) {
  const auto listener = listen_tcp(loopback());
  std::unique_ptr<ControlConnection> server;
  const auto client = connect_while(*listener, listener->address(), server);
  for (const ControlConnection* const end : {server.get(), client.get()}) {
    unsigned milliseconds = 0;
    socklen_t size = sizeof milliseconds;
    ASSERT_EQ(::getsockopt(end->fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &size), 0);
    EXPECT_GT(milliseconds, 0U);
    EXPECT_LE(milliseconds, 60'000U);
  }
}

TEST(TcpListener, TakesWhomItAdmits) {
  Address address = Address::parse("tcp:127.0.0.1:0");
  address.insecure = true;
  const auto listener = listen_tcp(address);
  std::vector<std::string> asked;
  listener->set_admission([&](const net::SocketAddress& peer) {
    asked.push_back(peer.host());
    return asked.size() != 1;
  });
  const auto first = connect_tcp(listener->address());
  const auto second = connect_tcp(listener->address());
  std::unique_ptr<ControlConnection> server;
  ASSERT_TRUE(support::eventually([&] { return (server = listener->accept()) != nullptr; }));
  EXPECT_EQ(asked, (std::vector<std::string>{"127.0.0.1", "127.0.0.1"}));
  EXPECT_EQ(thrown_by([&] { first->await(); }).code(), ErrorCode::connection_reset);
}

TEST(TcpListener, APortThatIsTaken) {
  const auto listener = listen_tcp(loopback());
  EXPECT_EQ(thrown_by([&] { static_cast<void>(listen_tcp(listener->address())); }).code(),
            ErrorCode::in_use);
}

TEST(TcpListener, ConnectingToNobody) {
  Address address;
  {
    const auto listener = listen_tcp(loopback());
    address = listener->address();
  }
  EXPECT_EQ(thrown_by([&] { static_cast<void>(connect_tcp(address)); }).code(),
            ErrorCode::not_connected);
}

}  // namespace
}  // namespace offload::comch
