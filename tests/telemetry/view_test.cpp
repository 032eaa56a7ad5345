#include "telemetry/view.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "telemetry/trace.hpp"

namespace offload::telemetry {
namespace {

/// A program that counts how often its page was made.
class Program final : public Source {
 public:
  void collect(Exposition& page) const override {
    ++pages;
    page.counter({"pages_total", "Pages."}, page.shard("thread", 3), pages);
  }
  [[nodiscard]] Condition health() const override { return {true, "it turns"}; }
  [[nodiscard]] Condition readiness() const override { return {ready, "no worker"}; }
  [[nodiscard]] nlohmann::json status() const override { return {{"workers", {1}}}; }
  void trace(Trace& trace) const override {
    trace.begin_thread("a thread");
    trace.add_span("worker", 1500, 4000, 64);
  }

  mutable std::atomic<int> pages{0};
  std::atomic<bool> ready{false};
};

class ViewTest : public testing::Test {
 protected:
  [[nodiscard]] core::Fd connect() const {
    core::Fd socket = net::start_connect(view_.address());
    pollfd writable{socket.get(), POLLOUT, 0};
    EXPECT_EQ(::poll(&writable, 1, 10'000), 1);
    EXPECT_EQ(net::connect_result(socket.get()), 0);
    return socket;
  }
  static void send(const core::Fd& socket, const std::string& text) {
    EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  /// All that comes until the server ends the connection.
  static std::string receive(const core::Fd& socket) {
    std::string all;
    char chunk[4096];
    for (;;) {
      pollfd readable{socket.get(), POLLIN, 0};
      if (::poll(&readable, 1, 20'000) != 1) return all + " and no end";
      const ssize_t count = ::recv(socket.get(), chunk, sizeof chunk, 0);
      if (count <= 0) return all;
      all.append(chunk, static_cast<std::size_t>(count));
    }
  }
  [[nodiscard]] std::string ask(const std::string& path, const std::string& method = "GET") const {
    const core::Fd socket = connect();
    send(socket, method + " " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return receive(socket);
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  Program program_;
  View view_{Endpoint{}, "a-program", program_};
};

TEST_F(ViewTest, ServesTheMetricsOfTheProgramAndItsProcess) {
  const auto answer = ask("/metrics");
  EXPECT_TRUE(has(answer, "HTTP/1.1 200")) << answer;
  EXPECT_TRUE(has(answer, "text/plain; version=0.0.4"));
  EXPECT_TRUE(has(answer, "\npages_total 1\n"));
  EXPECT_TRUE(has(answer, "offload_build_info{program=\"a-program\""));
  EXPECT_TRUE(has(answer, "process_open_fds "));
}

TEST_F(ViewTest, TellsThreadsApartWhereThatIsAsked) {
  EXPECT_TRUE(has(ask("/metrics?per_thread=1"), "pages_total{thread=\"3\"} 1"));
  EXPECT_TRUE(has(ask("/metrics?per_thread=0"), "pages_total 2"));
}

TEST_F(ViewTest, APageIsMadeTenTimesASecondAtMost) {
  const auto before = core::Clock::now();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(has(ask("/metrics"), "HTTP/1.1 200"));
  const auto most = (core::Clock::now() - before) / View::kPageAge + 1;
  EXPECT_LE(program_.pages, most);
  EXPECT_GE(program_.pages, 1);
}

TEST_F(ViewTest, TheStatusCodeSaysWhetherItIsReadyAndTheBodyWhy) {
  EXPECT_TRUE(has(ask("/healthz"), "HTTP/1.1 200"));
  const auto answer = ask("/readyz");
  EXPECT_TRUE(has(answer, "HTTP/1.1 503")) << answer;
  EXPECT_TRUE(has(answer, "\r\n\r\nno worker\n"));
  program_.ready = true;
  EXPECT_TRUE(has(ask("/readyz"), "HTTP/1.1 200"));
}

TEST_F(ViewTest, TheStatusIsJson) {
  const auto answer = ask("/status");
  EXPECT_TRUE(has(answer, "application/json"));
  const auto status = nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n")));
  EXPECT_EQ(status["program"], "a-program");
  EXPECT_EQ(status["ready"]["why"], "no worker");
  EXPECT_EQ(status["state"]["workers"].size(), 1U);
}

TEST_F(ViewTest, TheTraceIsOneOfChrome) {
  const auto answer = ask("/trace");
  EXPECT_TRUE(has(answer, "application/json"));
  const auto trace = nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n")));
  EXPECT_EQ(trace["traceEvents"].at(0)["args"]["name"], "a-program");
  EXPECT_EQ(trace["traceEvents"].at(2)["name"], "worker");
}

TEST_F(ViewTest, ThePageLoadsNothingFromElsewhere) {
  const auto answer = ask("/");
  EXPECT_TRUE(has(answer, "HTTP/1.1 200"));
  EXPECT_TRUE(has(answer, "text/html"));
  EXPECT_TRUE(has(answer, "default-src 'none'"));
  EXPECT_TRUE(has(answer, "</html>"));
}

TEST_F(ViewTest, TakesGetAloneAndKnowsItsPaths) {
  for (const char* method : {"POST", "PUT", "DELETE", "HEAD", "BREW"}) {
    const auto answer = ask("/metrics", method);
    EXPECT_TRUE(has(answer, "HTTP/1.1 405")) << answer;
    EXPECT_TRUE(has(answer, "Allow: GET"));
  }
  EXPECT_TRUE(has(ask("/nothing"), "HTTP/1.1 404"));
  EXPECT_EQ(program_.pages, 0);
}

TEST_F(ViewTest, RequestsThatAreHalfSentKeepNobodyWaiting) {
  std::vector<core::Fd> halves;
  for (int i = 0; i < 20; ++i) {
    halves.push_back(connect());
    send(halves.back(), "GET /metrics HTTP/1.1\r\nHo");
  }
  EXPECT_TRUE(has(ask("/healthz"), "HTTP/1.1 200"));
  // And are answered once they are whole.
  send(halves.front(), "st: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(has(receive(halves.front()), "pages_total"));
}

TEST_F(ViewTest, ARequestThatIsTooLongIsRefused) {
  const core::Fd socket = connect();
  send(socket, "GET /" + std::string(16'000, 'x') + " HTTP/1.1\r\n\r\n");
  const auto answer = receive(socket);
  EXPECT_TRUE(answer.empty() || has(answer, "HTTP/1.1 4")) << answer.substr(0, 100);
}

}  // namespace
}  // namespace offload::telemetry
