#include "net/http_client.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/error.hpp"
#include "net/socket.hpp"
#include "net/unix_socket.hpp"
#include "tests/core/process/rights.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::net {
namespace {

using core::ErrorCode;
using core::test::kNobody;
using core::test::kOther;

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

  core::Fd listener_ = listen_tcp(resolve("127.0.0.1", 0).front(), 8);
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

TEST_F(HttpClientTest, TakesAnAnswerUpToItsLimit) {
  constexpr std::size_t kMost = 64U << 20;
  const std::string body(kMost, 'x');
  reply_with("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kMost) + "\r\n\r\n" + body);
  EXPECT_EQ(ask({url("/"), {}, {}, false}, kLong).body.size(), kMost);
}

TEST_F(HttpClientTest, RefusesAnAnswerBeyondItsLimit) {
  constexpr std::size_t kMost = 64U << 20;
  const std::string body(kMost + 1, 'x');
  reply_with("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kMost + 1) + "\r\n\r\n" + body);
  const auto error = support::thrown_by([&] { ask({url("/"), {}, {}, false}, kLong); });
  EXPECT_EQ(error.code(), ErrorCode::not_connected);
}

TEST_F(HttpClientTest, AsksNoProxy) {
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  reply_with("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(ask({url("/"), {}, {}, false}, kLong).status, 200);
  ::unsetenv("http_proxy");
}

TEST_F(HttpClientTest, KeepsNoDescriptor) {
  const auto open_files = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  reply_with("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  const auto before = open_files();
  EXPECT_EQ(ask({url("/"), {}, {}, false}, kLong).status, 200);
  EXPECT_EQ(open_files(), before);
}

TEST_F(HttpClientTest, TheLimitOfOpenFilesIsNamed) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer checks an object by a pipe, which cannot be made then";
#endif
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_LT(limit.rlim_max, 1U << 30);
  const core::Fd last(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const rlimit no_more{static_cast<rlim_t>(last.get()) + 1, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &no_more), 0);
  const auto error = support::thrown_by([&] { ask({url("/"), {}, {}, false}, kLong); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(error.system_errno(), EMFILE) << error.what();
}

/// A UNIX socket of another user, which only root can make.
class HttpOverUnixSocket : public HttpClientTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  }
  /// The socket is that of the process, and user, that listens: unix(7), SO_PEERCRED.
  void listen_as(unsigned user) {
    std::filesystem::remove(path_);
    listener_ = listen_unix(path_, 1);
    ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
    // Refused connections stay in the queue.
    ASSERT_EQ(core::test::as_user(user, [&] { return ::listen(listener_.get(), 64); }), 0);
  }
  void give_folder_to(unsigned user, unsigned mode) const {
    ASSERT_EQ(::chown(folder_.path().c_str(), user, user), 0);
    ASSERT_EQ(::chmod(folder_.path().c_str(), mode), 0);
  }
  /// Asks as that user. Returns the reply, or why it is refused.
  std::string ask_as(unsigned user, const std::string& path) {
    return core::test::as_user(user, [&] {
      try {
        return ask({"http://localhost/", path, {}, false}, kLong).body;
      } catch (const core::Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_permitted);
        return std::string(error.what());
      }
    });
  }
  void expect_reply(unsigned user, const std::string& path) {
    reply_with("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_EQ(ask_as(user, path), "hello");
  }
  void expect_refusal(unsigned user, unsigned owner) {
    EXPECT_TRUE(
        ask_as(user, path_)
            .starts_with("the socket belongs to user " + std::to_string(owner) + ", process "));
  }

  support::TempDir folder_;
  std::string path_ = folder_.file("door");
};

TEST_F(HttpOverUnixSocket, OfTheSameUser) {
  listen_as(0);
  expect_reply(0, path_);
}

TEST_F(HttpOverUnixSocket, OfAUserAskedByTheSame) {
  give_folder_to(0, 0755);
  listen_as(kNobody);
  expect_reply(kNobody, path_);
}

TEST_F(HttpOverUnixSocket, OfRootAskedByAnother) {
  give_folder_to(0, 0755);
  listen_as(0);
  expect_reply(kNobody, path_);
}

TEST_F(HttpOverUnixSocket, OfTheOwnerOfItsFolderAskedByRoot) {
  listen_as(kNobody);
  give_folder_to(kNobody, 0755);
  expect_reply(0, path_);
}

TEST_F(HttpOverUnixSocket, IsFoundInTheCurrentFolder) {
  listen_as(kNobody);
  give_folder_to(kNobody, 0755);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  expect_reply(0, "door");
  std::filesystem::current_path(before);
}

// Another user could have put its socket there.
TEST_F(HttpOverUnixSocket, OfAnotherUserIsRefused) {
  listen_as(kNobody);
  for (const unsigned mode : {0755U, 0775U, 0757U}) {
    give_folder_to(0, mode);
    expect_refusal(0, kNobody);
    give_folder_to(kOther, mode);
    expect_refusal(0, kNobody);
  }
  for (const unsigned mode : {0775U, 0757U}) {
    give_folder_to(kNobody, mode);
    expect_refusal(0, kNobody);
  }
  give_folder_to(kNobody, 0755);
  expect_refusal(kOther, kNobody);
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
