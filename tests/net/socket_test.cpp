#include "net/socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/thrown.hpp"

namespace offload::net {
namespace {

using core::ErrorCode;
using support::thrown_by;

SocketAddress loopback(const std::string& host, std::uint16_t port = 0) {
  return resolve(host, port).front();
}

bool wait_for(int fd, short events, int milliseconds = 20'000) {
  pollfd watched{fd, events, 0};
  return ::poll(&watched, 1, milliseconds) == 1;
}

int option_of(int fd, int level, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  ::getsockopt(fd, level, option, &value, &size);
  return value;
}

void expect_traffic(const std::string& host) {
  const auto listener = listen_tcp(loopback(host), 8);
  const auto address = local_address(listener.get());
  EXPECT_NE(address.port(), 0);
  const auto client = start_connect(address);
  ASSERT_TRUE(wait_for(client.get(), POLLOUT));
  EXPECT_EQ(connect_result(client.get()), 0);
  ASSERT_TRUE(wait_for(listener.get(), POLLIN));
  const core::Fd server(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  ASSERT_TRUE(server.valid());
  ASSERT_EQ(::send(client.get(), "hello", 5, 0), 5);
  ASSERT_TRUE(wait_for(server.get(), POLLIN));
  std::array<char, 8> text{};
  EXPECT_EQ(::recv(server.get(), text.data(), text.size(), 0), 5);
  EXPECT_STREQ(text.data(), "hello");
  EXPECT_EQ(option_of(client.get(), IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(option_of(server.get(), IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(option_of(server.get(), SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option_of(server.get(), IPPROTO_TCP, TCP_KEEPIDLE), 60);
  EXPECT_EQ(option_of(server.get(), IPPROTO_TCP, TCP_KEEPINTVL), 10);
  set_dead_peer_timeout(server.get(), std::chrono::seconds(3));
  EXPECT_EQ(option_of(server.get(), IPPROTO_TCP, TCP_USER_TIMEOUT), 3000);
}

bool has_ipv6() {
  try {
    return listen_tcp(loopback("::1"), 1).valid();
  } catch (const core::Error&) {
    return false;
  }
}

TEST(Socket, TrafficOverIpv4) {
  expect_traffic("127.0.0.1");
}

TEST(Socket, TrafficOverIpv6) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no IPv6 loopback";
  expect_traffic("::1");
  expect_traffic("[::1]");
}

TEST(Socket, TrafficToAName) {
  expect_traffic("localhost");
}

TEST(Socket, NeverBlocksAndIsNotInherited) {
  const auto listener = listen_tcp(loopback("127.0.0.1"), 1);
  const auto client = start_connect(local_address(listener.get()));
  for (const int fd : {listener.get(), client.get()}) {
    EXPECT_NE(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST(Socket, ATakenPortIsInUse) {
  const auto listener = listen_tcp(loopback("127.0.0.1"), 1);
  const auto address = local_address(listener.get());
  const auto error = thrown_by([&] { listen_tcp(address, 1); });
  EXPECT_EQ(error.code(), ErrorCode::in_use);
  EXPECT_EQ(error.system_errno(), EADDRINUSE);
  EXPECT_NE(std::string(error.what()).find("cannot listen on " + address.to_string()),
            std::string::npos);
  EXPECT_TRUE(std::string(error.what()).ends_with("choose another port)")) << error.what();
}

TEST(Socket, APortThatWasJustGivenUpCanBeTakenAgain) {
  auto listener = listen_tcp(loopback("127.0.0.1"), 1);
  const auto address = local_address(listener.get());
  // A connection closed by the listening side leaves the port in TIME_WAIT.
  const auto client = start_connect(address);
  ASSERT_TRUE(wait_for(listener.get(), POLLIN));
  core::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
  listener.reset();
  EXPECT_NO_THROW(listen_tcp(address, 1));
}

/// The first socket of `sockets` with a connection, which is taken.
std::size_t queue_of(const std::vector<core::Fd>& sockets) {
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    if (core::Fd(::accept4(sockets[i].get(), nullptr, nullptr, SOCK_CLOEXEC)).valid()) return i;
  }
  return sockets.size();
}

core::Fd connect_from(const SocketAddress& source, const SocketAddress& to) {
  core::Fd client(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(client.get(), source.get(), source.size), 0);
  EXPECT_EQ(::connect(client.get(), to.get(), to.size), 0);
  return client;
}

TEST(SourceQueues, ASourceHasOneOfThem) {
  const auto sockets = listen_tcp_by_source(loopback("127.0.0.1"), 8);
  const auto address = local_address(sockets.front().get());
  std::set<std::size_t> taken;
  for (int last = 1; last <= 16; ++last) {
    const auto source = loopback("127.0.0." + std::to_string(last));
    std::set<std::size_t> queues;
    for (int i = 0; i < 8; ++i) {
      const auto client = connect_from(source, address);
      queues.insert(queue_of(sockets));
    }
    ASSERT_EQ(queues.size(), 1U) << last;
    ASSERT_LT(*queues.begin(), sockets.size()) << last;
    taken.insert(*queues.begin());
  }
  EXPECT_EQ(taken.size(), sockets.size());  // neighbours do not share one
}

TEST(SourceQueues, AFullOneKeepsNobodyElseWaiting) {
  const auto sockets = listen_tcp_by_source(loopback("127.0.0.1"), 1);
  const auto address = local_address(sockets.front().get());
  std::vector<core::Fd> flood;
  core::Fd refused;
  do {
    flood.push_back(core::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    const auto source = loopback("127.0.0.2");
    ASSERT_EQ(::bind(flood.back().get(), source.get(), source.size), 0);
    (void)::connect(flood.back().get(), address.get(), address.size);
  } while (wait_for(flood.back().get(), POLLOUT, 500) && flood.size() < 16);
  ASSERT_LT(flood.size(), 16U) << "the queue has no end";
  const auto client = connect_from(loopback("127.0.0.3"), address);
  EXPECT_LT(queue_of(sockets), sockets.size());
}

TEST(SourceQueues, OfIpv6AndIpv4AtOneSocket) {
  std::vector<core::Fd> sockets;
  try {
    sockets = listen_tcp_by_source(loopback("::"), 8);
  } catch (const core::Error& error) {
    GTEST_SKIP() << "no IPv6 here: " << error.what();
  }
  const auto port = local_address(sockets.front().get()).port();
  for (const char* const host : {"127.0.0.1", "::1"}) {
    std::set<std::size_t> queues;
    for (int i = 0; i < 8; ++i) {
      const auto client = connect_from(loopback(host), resolve(host, port).front());
      queues.insert(queue_of(sockets));
    }
    EXPECT_EQ(queues.size(), 1U) << host;
    EXPECT_LT(*queues.begin(), sockets.size()) << host;
  }
}

TEST(SourceQueues, ATakenPortIsInUse) {
  const auto sockets = listen_tcp_by_source(loopback("127.0.0.1"), 1);
  const auto address = local_address(sockets.front().get());
  for (const core::Fd& socket : sockets) {
    EXPECT_EQ(local_address(socket.get()).port(), address.port());
  }
  EXPECT_EQ(thrown_by([&] { listen_tcp_by_source(address, 1); }).code(), ErrorCode::in_use);
  EXPECT_EQ(thrown_by([&] { listen_tcp(address, 1); }).code(), ErrorCode::in_use);
}

TEST(Socket, NobodyThere) {
  auto listener = listen_tcp(loopback("127.0.0.1"), 1);
  const auto address = local_address(listener.get());
  listener.reset();
  const auto client = start_connect(address);
  ASSERT_TRUE(wait_for(client.get(), POLLOUT));
  EXPECT_EQ(connect_result(client.get()), ECONNREFUSED);
}

TEST(Socket, ConnectResultOfNoSocket) {
  EXPECT_EQ(connect_result(-1), EBADF);
}

TEST(Socket, AnAddressOfAnotherMachineCannotBeListenedOn) {
  // TEST-NET-1 (RFC 5737): no host answers.
  const auto error = thrown_by([] { listen_tcp(loopback("192.0.2.1"), 1); });
  EXPECT_EQ(error.system_errno(), EADDRNOTAVAIL);
  EXPECT_TRUE(std::string(error.what()).ends_with("does not have the address)")) << error.what();
}

// Names that cannot be asked for: the test sends nothing to a name server.
TEST(Resolve, WhatCannotBe) {
  for (const std::string& host : {std::string(64, 'x'), std::string(300, 'x')}) {
    const auto error = thrown_by([&] { resolve(host, 1); });
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(error.what()).find("cannot resolve '" + host + "'"), std::string::npos);
  }
}

TEST(Resolve, ALinkLocalAddressNeedsItsInterface) {
  for (const char* const host : {"fe80::1", "[fe80::1]"}) {
    const auto error = thrown_by([&] { resolve(host, 1); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_value);
    EXPECT_NE(std::string(error.what()).find("needs its interface"), std::string::npos);
  }
  EXPECT_EQ(resolve("fd00::1", 1).size(), 1U);
}

// No connection can be made to the group of all hosts.
TEST(Socket, AnAddressThatCannotBeConnectedToIsRefusedAtOnce) {
  const auto error = thrown_by([] { start_connect(loopback("224.0.0.1", 9)); });
  EXPECT_EQ(error.system_errno(), ENETUNREACH);
  EXPECT_NE(std::string(error.what()).find("cannot connect to 224.0.0.1:9"), std::string::npos);
}

TEST(SocketAddress, AsText) {
  EXPECT_EQ(loopback("127.0.0.1", 9).to_string(), "127.0.0.1:9");
  EXPECT_EQ(loopback("::1", 9).to_string(), "[::1]:9");
  EXPECT_EQ(loopback("[::1]", 65535).to_string(), "[::1]:65535");
  EXPECT_EQ(SocketAddress{}.to_string(), "?");
}

TEST(SocketAddress, ALinkLocalOneKeepsItsScope) {
  const auto address = loopback("fe80::1%lo", 9);
  EXPECT_EQ(address.host(), "fe80::1%lo");
  EXPECT_EQ(loopback(address.host(), 9).to_string(), "[fe80::1%lo]:9");
}

TEST(SocketAddress, OfAllOrOfThisMachineAlone) {
  for (const char* const host : {"0.0.0.0", "::"}) {
    EXPECT_TRUE(loopback(host).is_wildcard()) << host;
    EXPECT_FALSE(loopback(host).is_loopback()) << host;
  }
  for (const char* const host : {"127.0.0.1", "127.255.0.1", "::1"}) {
    EXPECT_FALSE(loopback(host).is_wildcard()) << host;
    EXPECT_TRUE(loopback(host).is_loopback()) << host;
  }
  for (const char* const host : {"126.0.0.1", "128.0.0.1", "fd00::1"}) {
    EXPECT_FALSE(loopback(host).is_wildcard()) << host;
    EXPECT_FALSE(loopback(host).is_loopback()) << host;
  }
  EXPECT_FALSE(SocketAddress{}.is_wildcard());
  EXPECT_FALSE(SocketAddress{}.is_loopback());
}

TEST(SocketAddress, IsCopiedFromOneOfTheSystem) {
  for (const char* const host : {"127.0.0.1", "fd00::1"}) {
    const auto address = loopback(host, 9);
    const auto copy = SocketAddress::from(address.get());
    EXPECT_EQ(copy.to_string(), address.to_string());
    EXPECT_EQ(copy.size, address.size);
  }
  sockaddr other{};
  other.sa_family = AF_UNIX;
  EXPECT_EQ(SocketAddress::from(&other).family(), AF_UNSPEC);
  EXPECT_EQ(SocketAddress::from(nullptr).family(), AF_UNSPEC);
}

TEST(SocketAddress, PortOfBothFamilies) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    EXPECT_EQ(loopback(host, 0x1234).port(), 0x1234);
    EXPECT_EQ(loopback(host, 80).port(), 80);
  }
  EXPECT_EQ(loopback("127.0.0.1").family(), AF_INET);
  EXPECT_EQ(loopback("::1").family(), AF_INET6);
}

}  // namespace
}  // namespace offload::net
