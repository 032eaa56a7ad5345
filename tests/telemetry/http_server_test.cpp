#include "telemetry/http_server.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "net/socket.hpp"
#include "net/source/source.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::telemetry {
namespace {

constexpr const char* kHalf = "GET / HTTP/1.1\r\nX: ";
constexpr const char* kWhole = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

class HttpServerTest : public testing::Test {
 protected:
  explicit HttpServerTest(unsigned most = HttpServer::kMostConnections,
                          unsigned patience = HttpServer::kPatience) {
    core::Fd listener = net::listen_tcp(net::resolve("127.0.0.1", 0).front(), 1024);
    const int small = 4096;  // of each connection's output: a long answer does not fit
    EXPECT_EQ(::setsockopt(listener.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    address_ = net::local_address(listener.get());
    server_.emplace(
        std::move(listener),
        [](const HttpRequest& request) {
          return HttpResponse{200, "text/plain",
                              std::string(request.path == "/long" ? 1 << 23 : 1, 'x')};
        },
        most, patience);
  }
  /// Returns a connection from an address of loopback.
  [[nodiscard]] core::Fd connect(const std::string& from) const {
    core::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const net::SocketAddress local = net::resolve(from, 0).front();
    EXPECT_EQ(::bind(socket.get(), local.get(), local.size), 0);
    EXPECT_EQ(::connect(socket.get(), address_.get(), address_.size), 0);
    return socket;
  }
  static void send(const core::Fd& socket, const std::string& text) {
    (void)::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  /// Returns how many connections of this server have made room.
  [[nodiscard]] std::uint64_t limited() const {
    return net::limited_sources.count(net::Door::http) - limited_before_;
  }
  static bool has_ended(const core::Fd& socket) {
    char byte = 0;
    const ssize_t count = ::recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN);
  }
  /// Returns whether `rest` completes a request and the server answers it.
  static bool is_answered(const core::Fd& socket, const std::string& rest) {
    send(socket, rest);
    pollfd readable{socket.get(), POLLIN, 0};
    char line[12] = {};
    return ::poll(&readable, 1, 20'000) == 1 &&
           ::recv(socket.get(), line, sizeof line, MSG_WAITALL) == sizeof line &&
           std::memcmp(line, "HTTP/1.1 200", sizeof line) == 0;
  }
  /// Sends a whole request and reads the whole answer, so that the connection can be used again.
  static bool is_answered_whole(const core::Fd& socket) {
    if (!is_answered(socket, kWhole)) return false;
    std::string rest;
    while (!rest.ends_with("\r\n\r\nx")) {
      pollfd readable{socket.get(), POLLIN, 0};
      char byte = 0;
      if (::poll(&readable, 1, 20'000) != 1 || ::recv(socket.get(), &byte, 1, 0) != 1) return false;
      rest += byte;
    }
    return true;
  }
  std::vector<core::Fd> hold(unsigned count, const std::string& from) const {
    std::vector<core::Fd> held;
    for (unsigned i = 0; i < count; ++i) {
      held.push_back(connect(from));
      send(held.back(), kHalf);
    }
    return held;
  }

  const support::LogCapture log_;
  const std::uint64_t limited_before_ = net::limited_sources.count(net::Door::http);
  net::SocketAddress address_;
  std::optional<HttpServer> server_;
};

TEST_F(HttpServerTest, TheSourceThatHasTheMostMakesRoom) {
  const core::Fd first = connect("127.0.0.3");
  send(first, kHalf);
  const auto flood = hold(2 * HttpServer::kMostConnections, "127.0.0.2");
  EXPECT_TRUE(is_answered(connect("127.0.0.4"), kWhole));
  EXPECT_TRUE(is_answered(first, "\r\nHost: x\r\n\r\n"));
  EXPECT_TRUE(support::eventually([&] { return has_ended(flood.front()); }));
  EXPECT_FALSE(has_ended(flood.back()));
  EXPECT_GE(limited(), HttpServer::kMostConnections);
  EXPECT_TRUE(log_.has("it is closed to make room for another, because its address has the most"))
      << log_.text();
  const std::string log = log_.text();
  EXPECT_LT(std::ranges::count(log, '\n'), HttpServer::kMostConnections / 2) << "one a second";
}

TEST_F(HttpServerTest, TheSameSourceIsServedToo) {
  const auto flood = hold(2 * HttpServer::kMostConnections, "127.0.0.2");
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(is_answered(connect("127.0.0.2"), kWhole)) << i;
  }
}

class HttpServerWithFewPlaces : public HttpServerTest {
 protected:
  static constexpr unsigned kMost = 8;
  HttpServerWithFewPlaces() : HttpServerTest(kMost) {}
};

// They send requests, and do not read: only the newcomer has no request in progress.
TEST_F(HttpServerWithFewPlaces, TheSameSourceIsServedBesideItsRequestsUnderWay) {
  std::vector<core::Fd> held;
  while (held.size() < 2 * kMost) {
    held.push_back(connect("127.0.0.2"));
    ASSERT_TRUE(is_answered(held.back(), "GET /long HTTP/1.1\r\nHost: x\r\n\r\n")) << held.size();
  }
  EXPECT_TRUE(is_answered(connect("127.0.0.2"), kWhole));
}

TEST_F(HttpServerWithFewPlaces, AllOfThemAreTaken) {
  std::vector<core::Fd> held;
  for (unsigned i = 1; i < kMost; ++i) {
    held.push_back(connect("127.0.0." + std::to_string(i + 1)));
    ASSERT_TRUE(is_answered_whole(held.back())) << i;
  }
  EXPECT_EQ(limited(), 0U) << "there is room for one more";
  EXPECT_TRUE(is_answered(connect("127.0.0.100"), kWhole));
  EXPECT_EQ(limited(), 1U);
}

TEST_F(HttpServerWithFewPlaces, AConnectionThatHasEndedTakesNone) {
  const core::Fd first = connect("127.0.0.2");
  EXPECT_TRUE(is_answered_whole(first));
  for (unsigned i = 0; i < 4 * kMost; ++i) {
    ASSERT_TRUE(is_answered_whole(connect("127.0.0.3")));
    // The server sees the end of it when the next one comes, or before.
  }
  EXPECT_EQ(limited(), 0U) << log_.text();
  EXPECT_TRUE(is_answered_whole(first));
}

// Those that are closed in the middle of an answer are counted once.
TEST_F(HttpServerWithFewPlaces, ThereIsRoomAgainAfterAFlood) {
  std::vector<core::Fd> flood;
  while (flood.size() < 4 * kMost) {
    flood.push_back(connect("127.0.0.2"));
    ASSERT_TRUE(is_answered(flood.back(), "GET /long HTTP/1.1\r\nHost: x\r\n\r\n"));
  }
  EXPECT_GE(limited(), 3 * kMost);
  flood.clear();
  EXPECT_TRUE(support::eventually([&] {
    const std::uint64_t before = limited();
    std::vector<core::Fd> held;
    while (held.size() < kMost - 1) {
      held.push_back(connect("127.0.0." + std::to_string(10 + held.size())));
      EXPECT_TRUE(is_answered_whole(held.back()));
    }
    return limited() == before;
  }));
}

// A peer that has sent a request may read the answer within a second.
TEST_F(HttpServerTest, ItsEndWaitsForAnswersAndEndsConnections) {
  const core::Fd idle = connect("127.0.0.2");
  EXPECT_TRUE(is_answered_whole(idle));
  const core::Fd reader = connect("127.0.0.3");
  EXPECT_TRUE(is_answered(reader, "GET /long HTTP/1.1\r\nHost: x\r\n\r\n"));
  const auto before = core::Clock::now();
  server_.reset();
  EXPECT_GE(core::Clock::now() - before, std::chrono::milliseconds(900));
  EXPECT_TRUE(support::eventually([&] { return has_ended(idle); }));
}

class HttpServerWithoutPatience : public HttpServerTest {
 protected:
  HttpServerWithoutPatience() : HttpServerTest(HttpServer::kMostConnections, 1) {}
};

// Each of its bytes restarts libmicrohttpd's own limit.
TEST_F(HttpServerWithoutPatience, ARequestThatTricklesEndsOnceAnotherComes) {
  const core::Fd trickling = connect("127.0.0.2");
  const core::Fd in_its_second = connect("127.0.0.2");
  EXPECT_TRUE(is_answered_whole(in_its_second));
  send(trickling, kHalf);
  send(in_its_second, kHalf);
  EXPECT_TRUE(support::eventually(
      [&] {
        EXPECT_TRUE(is_answered(connect("127.0.0.3"), kWhole));
        return has_ended(trickling) && has_ended(in_its_second);
      },
      [&] {
        pollfd waits{trickling.get(), POLLIN, 0};
        ::poll(&waits, 1, 100);
        send(trickling, "a");
        send(in_its_second, "a");
      }));
  EXPECT_TRUE(log_.has("its request did not arrive in time")) << log_.text();
}

class HttpServerWithLittlePatience : public HttpServerTest {
 protected:
  static constexpr unsigned kSeconds = 2;
  HttpServerWithLittlePatience() : HttpServerTest(HttpServer::kMostConnections, kSeconds) {}
};

// The limit begins again with each request, not once with the connection.
TEST_F(HttpServerWithLittlePatience, AConnectionInUseStaysWhenAnotherComes) {
  const core::Fd used = connect("127.0.0.2");
  const core::TimePoint end = core::Clock::now() + core::seconds(1.2 * kSeconds);
  while (core::Clock::now() < end) {
    ASSERT_TRUE(is_answered_whole(used)) << log_.text();
    ASSERT_TRUE(is_answered(connect("127.0.0.3"), kWhole));
    pollfd ends{used.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&ends, 1, 100), 0) << log_.text();
  }
}

}  // namespace
}  // namespace offload::telemetry
