#include "net/http_client.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "core/error.hpp"
#include "net/socket.hpp"
#include "tests/support/thrown.hpp"

namespace offload::net {
namespace {

using core::ErrorCode;

constexpr core::Duration kLong = std::chrono::seconds(20);

/// A listener, and a child process that replies to one connection with a fixed text.
class HttpClientTest : public testing::Test {
 protected:
  ~HttpClientTest() override {
    if (server_ > 0) ::waitpid(server_, nullptr, 0);
  }
  void reply_with(const std::string& reply) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    asked_ = core::Fd(ends[0]);
    const core::Fd told(ends[1]);
    server_ = ::fork();
    ASSERT_GE(server_, 0);
    if (server_ != 0) return;
    ::alarm(20);
    const int flags = ::fcntl(listener_.get(), F_GETFL);
    ::fcntl(listener_.get(), F_SETFL, flags & ~O_NONBLOCK);
    const int peer = ::accept(listener_.get(), nullptr, nullptr);
    std::array<char, 4096> bytes;
    const ssize_t size = ::recv(peer, bytes.data(), bytes.size(), 0);
    if (size > 0 && ::write(told.get(), bytes.data(), static_cast<std::size_t>(size)) == size) {
      ::send(peer, reply.data(), reply.size(), MSG_NOSIGNAL);
    }
    ::_exit(0);
  }
  /// Returns what the server was asked.
  std::string request() {
    std::string text(4096, '\0');
    const ssize_t size = ::read(asked_.get(), text.data(), text.size());
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return text;
  }
  std::string url(const std::string& path) { return "http://" + address_.to_string() + path; }

  core::Fd listener_ = listen_tcp(resolve("127.0.0.1", 0, true).front(), 8);
  SocketAddress address_ = local_address(listener_.get());
  core::Fd asked_;
  pid_t server_ = -1;
};

TEST_F(HttpClientTest, ReturnsTheStatusAndTheBody) {
  reply_with("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello");
  const HttpAnswer answer = ask({url("/readyz"), {}, {}, false}, kLong);
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.body, "hello");
  EXPECT_TRUE(request().starts_with("GET /readyz HTTP/1.1\r\n"));
}

TEST_F(HttpClientTest, PostsAValueThatIsEscaped) {
  reply_with("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  const HttpAnswer answer = ask({url("/drain"), {}, "a b&c", true}, kLong);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "");
  const std::string asked = request();
  EXPECT_TRUE(asked.starts_with("POST /drain?value=a%20b%26c HTTP/1.1\r\n")) << asked;
  EXPECT_NE(asked.find("Content-Length: 0\r\n"), std::string::npos) << asked;
}

TEST_F(HttpClientTest, AnAnswerThatIsCutShortIsNone) {
  reply_with("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
  const auto error = support::thrown_by([&] { ask({url("/"), {}, {}, false}, kLong); });
  EXPECT_EQ(error.code(), ErrorCode::not_connected);
}

TEST_F(HttpClientTest, WaitsNoLongerThanItsLimit) {
  const auto begin = core::Clock::now();
  const auto limit = std::chrono::milliseconds(50);
  const auto error = support::thrown_by([&] { ask({url("/"), {}, {}, false}, limit); });
  EXPECT_EQ(error.code(), ErrorCode::not_connected);
  EXPECT_GE(core::Clock::now() - begin, limit);
}

TEST_F(HttpClientTest, NobodyThere) {
  listener_.reset();
  const auto refused = support::thrown_by([&] { ask({url("/"), {}, {}, false}, kLong); });
  EXPECT_EQ(refused.code(), ErrorCode::not_connected);
  EXPECT_EQ(refused.system_errno(), ECONNREFUSED);
  const auto missing = support::thrown_by([&] {
    ask({"http://localhost/", "/nowhere/socket", {}, false}, kLong);
  });
  EXPECT_EQ(missing.code(), ErrorCode::not_connected);
}

TEST_F(HttpClientTest, ReadsNoFiles) {
  const auto error = support::thrown_by([] {
    ask({"file:///etc/hostname", {}, {}, false}, kLong);
  });
  EXPECT_EQ(error.code(), ErrorCode::not_connected);
}

}  // namespace
}  // namespace offload::net
