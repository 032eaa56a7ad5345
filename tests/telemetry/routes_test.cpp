#include "telemetry/routes.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "net/source/source.hpp"
#include "telemetry/trace.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/telemetry/ask_unix.hpp"

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
  [[nodiscard]] nlohmann::json status() const override {
    return {{"workers", {1}}, {"name", "gr\xc3\xb6\xc3\x9f\xff"}};
  }
  void trace(Trace& trace) const override {
    trace.begin_thread("a thread");
    trace.add_span("worker", 1500, 4000, ++traces);
  }

  mutable std::atomic<int> pages{0};
  mutable std::atomic<std::uint64_t> traces{0};
  std::atomic<bool> ready{false};
};

class ViewTest : public testing::Test {
 protected:
  [[nodiscard]] core::Fd connect() const { return connect_to(routes_); }
  static core::Fd connect_to(const Routes& routes) {
    core::Fd socket = net::start_connect(routes.address());
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
  [[nodiscard]] std::string ask(const std::string& path, const std::string& method = "GET",
                                const std::string& host = "localhost") const {
    return ask_of(routes_, path, method, host);
  }
  [[nodiscard]] std::string ask_as(const std::string& accept, const std::string& path) const {
    return ask_of(routes_, path, "GET", "localhost\r\nAccept: " + accept);
  }
  static std::string ask_of(const Routes& routes, const std::string& path,
                            const std::string& method, const std::string& host) {
    const core::Fd socket = connect_to(routes);
    send(socket,
         method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
    return receive(socket);
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  Program program_;
  Routes routes_{MetricsAddress{}, "a-program", program_};
};

TEST_F(ViewTest, ServesTheMetricsOfTheProgramAndItsProcess) {
  const auto answer = ask("/metrics");
  EXPECT_TRUE(has(answer, "HTTP/1.1 200")) << answer;
  EXPECT_TRUE(has(answer, "text/plain; version=0.0.4"));
  EXPECT_TRUE(has(answer, "\npages_total 1\n"));
  EXPECT_TRUE(has(answer, "offload_build_info{program=\"a-program\""));
  EXPECT_TRUE(has(answer, "process_open_fds "));
  for (const char* const door : net::kDoors) {
    EXPECT_TRUE(
        has(answer, "\noffload_limited_connections_total{door=\"" + std::string(door) + "\"} "))
        << door;
  }
}

TEST_F(ViewTest, TellsThreadsApartWhereThatIsAsked) {
  EXPECT_TRUE(has(ask("/metrics?per_thread=1"), "pages_total{thread=\"3\"} 1"));
  EXPECT_TRUE(has(ask("/metrics?per_thread=0"), "pages_total 2"));
}

TEST_F(ViewTest, ServesOpenMetricsToWhomeverPrefersIt) {
  const std::string open = "application/openmetrics-text;version=1.0.0,*/*;q=0.1";
  const auto answer = ask_as(open, "/metrics?per_thread=1");
  EXPECT_TRUE(has(answer,
                  "\nContent-Type: application/openmetrics-text; version=1.0.0; "
                  "charset=utf-8\r\n"))
      << answer;
  EXPECT_TRUE(has(answer, "\n# TYPE pages counter\n"));
  EXPECT_TRUE(has(answer, "\npages_total{thread=\"3\"} 1\n"));
  EXPECT_TRUE(answer.ends_with("\n# EOF\n"));
  // Each of these pages is kept by itself.
  EXPECT_TRUE(has(ask_as(open, "/metrics"), "\npages_total 2\n"));
  EXPECT_TRUE(has(ask_as("text/plain", "/metrics"), "\n# TYPE pages_total counter\n"));
}

TEST_F(ViewTest, APageIsMadeTenTimesASecondAtMost) {
  const auto before = core::Clock::now();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(has(ask("/metrics"), "HTTP/1.1 200"));
  const auto most = (core::Clock::now() - before) / Routes::kPageAge + 1;
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
  EXPECT_EQ(status["state"]["name"], "gr\xc3\xb6\xc3\x9f\xef\xbf\xbd") << "a byte is no UTF-8";
  const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
  EXPECT_EQ(body.find('\n'), body.size() - 1) << "it is one line";
  EXPECT_TRUE(has(body, "gr\xc3\xb6\xc3\x9f")) << "letters are not escaped";
}

TEST_F(ViewTest, StatusAndTraceAreMadeAgain) {
  EXPECT_TRUE(has(ask("/status"), R"("ready":{"holds":false,)"));
  EXPECT_TRUE(has(ask("/trace"), R"("bytes":1})"));
  program_.ready = true;
  EXPECT_TRUE(
      support::eventually([&] { return has(ask("/status"), R"("ready":{"holds":true,)"); }));
  EXPECT_TRUE(support::eventually([&] { return !has(ask("/trace"), R"("bytes":1})"); }));
}

TEST_F(ViewTest, TheLogNamesItsAddressAndWarnsOfTheNetwork) {
  support::LogCapture log;
  const Routes loopback(MetricsAddress{}, "a-program", program_);
  EXPECT_EQ(log.text(), "info: metrics on http://" + loopback.address().to_string() + "/metrics\n");
  log.clear();
  const Routes network(MetricsAddress{"0.0.0.0", 0}, "a-program", program_);
  const std::string address = network.address().to_string();
  EXPECT_EQ(log.text(), "info: metrics on http://" + address + "/metrics\nwarning: " + address +
                            " serves metrics to the network, unencrypted\n");
}

TEST_F(ViewTest, TheTraceIsOneOfChrome) {
  const auto answer = ask("/trace");
  EXPECT_TRUE(has(answer, "HTTP/1.1 200"));
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

TEST_F(ViewTest, TakesGetAndHeadAloneAndKnowsItsPaths) {
  for (const char* method : {"POST", "PUT", "DELETE", "BREW"}) {
    const auto answer = ask("/metrics", method);
    EXPECT_TRUE(has(answer, "HTTP/1.1 405")) << answer;
    EXPECT_TRUE(has(answer, "Allow: GET, HEAD\r\n"));
  }
  EXPECT_TRUE(has(ask("/nothing"), "HTTP/1.1 404"));
  EXPECT_EQ(program_.pages, 0);
}

TEST_F(ViewTest, HeadIsGetWithoutABody) {
  const auto get = ask("/readyz");
  const auto head = ask("/readyz", "HEAD");
  EXPECT_TRUE(has(head, "HTTP/1.1 503"));
  EXPECT_TRUE(has(head, "Content-Length: 10\r\n")) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_TRUE(get.ends_with("\r\n\r\nno worker\n"));
}

// The page of a stranger's name that has this machine's address (DNS rebinding).
TEST_F(ViewTest, AnswersNobodyWhoAsksForAnotherHost) {
  for (const char* path : {"/status", "/metrics", "/trace", "/", "/healthz"}) {
    const auto answer = ask(path, "GET", "evil.example:80");
    EXPECT_TRUE(has(answer, "HTTP/1.1 421")) << answer;
    EXPECT_FALSE(has(answer, "a-program"));
  }
  EXPECT_EQ(program_.pages, 0);
  const auto port = std::to_string(routes_.address().port());
  for (const auto& host : {"127.0.0.1:" + port, std::string("[::1]:") + port}) {
    EXPECT_TRUE(has(ask("/status", "GET", host), "HTTP/1.1 200")) << host;
  }
}

// Its metrics are the network's to read, by the name that a scraper has for this machine.
TEST_F(ViewTest, OfTheNetworkIsAskedByAnyName) {
  const Routes routes(MetricsAddress{"0.0.0.0", 0}, "a-program", program_);
  EXPECT_TRUE(has(ask_of(routes, "/status", "GET", "gpu1.cluster.example"), "HTTP/1.1 200"));
}

class AdminTest : public testing::Test {
 protected:
  support::TempDir folder_;
  std::string door_ = folder_.file("door");
  Program program_;
  CommandQueue commands_{[] {}};
};

TEST_F(AdminTest, TheSocketGoesWithIt) {
  { const Routes routes(door_, "a-program", program_, commands_); }
  EXPECT_FALSE(std::filesystem::exists(door_));
}

TEST_F(AdminTest, AnothersSocketInItsPlaceStays) {
  std::optional<Routes> routes(std::in_place, door_, "a-program", program_, commands_);
  std::filesystem::remove(door_);
  const Routes another(door_, "another-program", program_, commands_);
  routes.reset();
  EXPECT_TRUE(std::filesystem::exists(door_));
}

TEST_F(AdminTest, ACommandIsCarriedOutAndAnswered) {
  const support::LogCapture log;
  std::atomic<bool> over{false};
  const Routes routes(door_, "a-program", program_, commands_);
  EXPECT_EQ(log.text(), "info: commands are accepted at unix:" + door_ + "\n");
  std::thread control([&] {
    while (!over) {
      commands_.carry_out([](const AdminCommand& command) {
        using enum CommandResult::Status;
        const auto status = command.name == "turn"   ? done
                            : command.name == "stop" ? refused
                                                     : unknown;
        return CommandResult{status, command.name + " <" + command.argument + ">"};
      });
      std::this_thread::yield();
    }
  });
  const auto ask = [this](const char* method, const char* target) {
    const std::string all = ask_unix(door_, method, target);
    return all.substr(9, 4) + all.substr(all.find("\r\n\r\n") + 4);
  };
  EXPECT_EQ(ask("POST", "/turn?value=left"), "200 turn <left>\n");
  EXPECT_EQ(ask("POST", "/turn"), "200 turn <>\n");
  EXPECT_EQ(ask("POST", "/stop"), "409 stop <>\n");
  EXPECT_EQ(ask("POST", "/else?value=1"), "404 else <1>\n");
  EXPECT_EQ(ask("GET", "/readyz"), "503 no worker\n");
  EXPECT_EQ(ask("PUT", "/turn"), "405 allowed: GET, HEAD, POST\n");
  over = true;
  control.join();
  EXPECT_TRUE(log.has("info: command turn left: turn <left>\n")) << log.text();
  EXPECT_TRUE(log.has("info: command stop : stop <>\n")) << log.text();
}

TEST_F(ViewTest, RequestsThatAreHalfSentKeepNobodyWaiting) {
  std::vector<core::Fd> halves;
  for (int i = 0; i < 20; ++i) {
    halves.push_back(connect());
    send(halves.back(), "GET /metrics HTTP/1.1\r\nHo");
  }
  EXPECT_TRUE(has(ask("/healthz"), "HTTP/1.1 200"));
  // The halves are answered once they are whole.
  send(halves.front(), "st: localhost\r\nConnection: close\r\n\r\n");
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
