#include "apps/server/server.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <exception>
#include <fstream>
#include <string>
#include <thread>

#include "comch/session/worker_session.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "net/socket.hpp"
#include "tests/server/fixtures/client_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::server {
namespace {

using protocol::Refusal;
using support::bytes_of;
using test::error;
using test::response;
using test::send_request;

/// Returns a port that was free a moment ago.
std::uint16_t free_port() {
  const core::Fd socket = net::bind_tcp(net::resolve("127.0.0.1", 0, true).front());
  return net::local_address(socket.get()).port();
}

/// A worker of the server's one channel, which reverses requests.
class TestWorker final : comch::WorkerSession::Observer {
 public:
  explicit TestWorker(const std::string& address, std::uint32_t capabilities = 0) {
    protocol::Hello hello;
    hello.capabilities = capabilities;
    hello.max_channels = 16;
    hello.max_message_length = 4096;
    hello.backend = "test";
    hello.services = {"reverse"};
    session_.emplace(engine_, comch::Address::parse(address), hello, std::uint64_t{1} << 30,
                     static_cast<comch::WorkerSession::Observer&>(*this));
  }

  void turn() {
    engine_.run_once(core::Clock::now() + std::chrono::milliseconds(1));
    if (engine_.now() >= session_->next_tick()) session_->tick(engine_.run_time());
    if (channels_.empty() || hangs) return;
    while (kernels::serve(kernels::SingleLane{}, channels_.front().channel->view(), sequence_,
                          kernels::Reverse{}, staging_) != kernels::Outcome::nothing) {
      ++sequence_;
    }
  }
  void request_shutdown() { session_->request_shutdown(); }
  void request_detach() { session_->request_detach(); }
  bool hangs = false;  ///< it keeps its session alive, but answers nothing

  [[nodiscard]] bool attached() const { return attached_; }
  [[nodiscard]] bool told_to_stop() const { return told_to_stop_; }
  [[nodiscard]] std::optional<protocol::ShutdownReason> reason() const { return reason_; }
  [[nodiscard]] std::uint32_t channels() const { return assigned_; }
  [[nodiscard]] std::optional<Refusal> refused() const { return refused_; }

 private:
  void on_channels(std::vector<comch::AttachedChannel> channels) override {
    EXPECT_EQ(channels.front().service, "reverse");
    channels_ = std::move(channels);
    sequence_ = channels_.front().channel->first_sequence();
  }
  void on_attached() override { attached_ = true; }
  void on_assignment(std::uint32_t channels) override { assigned_ = channels; }
  void on_start_shutdown(protocol::ShutdownReason reason) override {
    told_to_stop_ = true;
    reason_ = reason;
    session_->complete();
  }
  void on_lost(const std::string&, std::optional<Refusal> refused) override { refused_ = refused; }

  progress::Engine engine_;
  std::vector<comch::AttachedChannel> channels_;
  std::uint64_t sequence_ = 0;
  kernels::Staging staging_{};
  bool attached_ = false;
  bool told_to_stop_ = false;
  std::optional<protocol::ShutdownReason> reason_;
  std::uint32_t assigned_ = 0;
  std::optional<Refusal> refused_;
  std::optional<comch::WorkerSession> session_;
};

/// A server on a separate thread; the test acts as its worker and its clients.
class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    options_.comch = "unix:" + dir_.file("comch");
    options_.listen_port = free_port();
    options_.listens = {{options_.listen_port, "reverse"}};
    options_.max_concurrent_messages = 4;
    options_.shutdown_timeout = core::seconds(5);
  }
  ~ServerTest() override {
    if (!thread_.joinable()) return;
    client_.reset();
    ::kill(::getpid(), SIGTERM);
    ends();
  }

  void start() {
    server_.emplace(options_, signals_);
    thread_ = std::thread([this] {
      server_->run();
      ended_ = true;
    });
  }

  /// Starts it with a configuration, which is missing at first.
  void start_with_a_file() {
    options_.configuration.argument_count = static_cast<int>(arguments_.size());
    options_.configuration.arguments = arguments_.data();
    start();
  }
  /// Returns whether it rereads the configuration, which is `text` now.
  bool rereads(const char* text) {
    const std::size_t before = log_.text().size();
    std::ofstream(file_) << text;
    ::kill(::getpid(), SIGHUP);
    return eventually([&] { return log_.text().find("were reread", before) != std::string::npos; });
  }

  void turn() {
    if (second_) second_->turn();
    if (worker_) {
      worker_->turn();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  template <class Condition>
  bool eventually(Condition condition) {
    return support::eventually(condition, [this] { turn(); });
  }

  bool attach() {
    worker_.emplace(options_.comch);
    return eventually([this] { return worker_->attached(); });
  }
  /// Returns whether run() returns.
  bool ends() {
    const bool ended = eventually([this] { return ended_.load(); });
    if (ended && thread_.joinable()) thread_.join();
    return ended;
  }

  /// Connects a client; returns whether it is accepted.
  bool connect() {
    received_ = {};
    client_ = net::start_connect(
        net::resolve(options_.listen_address, options_.listen_port, false).front());
    pollfd watched{client_.get(), POLLOUT, 0};
    return eventually([&] { return ::poll(&watched, 1, 0) == 1; }) &&
           net::connect_result(client_.get()) == 0;
  }
  /// Connects once clients are accepted.
  bool enter() {
    return eventually([this] { return log_.has("listening on"); }) && connect();
  }
  std::optional<test::Received::Frame> next() {
    std::optional<test::Received::Frame> frame;
    eventually([&] {
      received_.read(client_);
      frame = received_.take();
      return frame.has_value() || received_.ended;
    });
    return frame;
  }

  core::Signals signals_{core::Hangup::rereads};  // before any thread
  support::LogCapture log_;
  support::TempDir dir_;
  const std::string file_ = dir_.file("settings.toml");
  const std::array<const char*, 3> arguments_{"offload-server", "--config", file_.c_str()};
  /// Loses the worker; requests are refused then, until another one attaches.
  void wait_too_long_for_a_worker() {
    start();
    ASSERT_TRUE(attach());
    ASSERT_TRUE(enter());
    worker_.reset();
    send_request(client_, bytes_of("lost"));
    EXPECT_EQ(next(), error(Refusal::worker_unavailable));
    ASSERT_TRUE(attach());
    // The I/O thread hears of that worker after the worker does: until then it refuses.
    ASSERT_TRUE(eventually([this] {
      send_request(client_, bytes_of("found"));
      return next() == response(bytes_of("dnuof"));
    }));
  }

  Options options_;
  std::optional<Server> server_;
  std::optional<TestWorker> worker_;
  std::optional<TestWorker> second_;
  std::thread thread_;
  std::atomic<bool> ended_{false};
  core::Fd client_;
  test::Received received_;
};

TEST_F(ServerTest, AnswersAClientThatCameBeforeTheFirstWorker) {
  start();
  ASSERT_TRUE(connect());
  send_request(client_, bytes_of("request"));
  ASSERT_TRUE(attach());
  EXPECT_EQ(next(), response(bytes_of("tseuqer")));
}

TEST_F(ServerTest, ItsPortIsItsOwnBeforeAWorkerComes) {
  start();
  EXPECT_THROW(net::listen_tcp(net::resolve("127.0.0.1", options_.listen_port, true).front(), 1),
               core::Error);
}

TEST_F(ServerTest, ASignalEndsItBeforeAWorkerHasCome) {
  start();
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(ends());
  EXPECT_TRUE(log_.has("SIGTERM: shutting down")) << log_.text();
}

TEST_F(ServerTest, ASignalEndsItAndItsWorkerIsTold) {
  start();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  send_request(client_, bytes_of("1"));
  EXPECT_EQ(next(), response(bytes_of("1")));
  ::kill(::getpid(), SIGINT);
  EXPECT_TRUE(eventually([&] { return received_.read(client_), received_.ended; }));
  client_.reset();
  EXPECT_TRUE(ends());
  EXPECT_TRUE(worker_->told_to_stop());
}

TEST_F(ServerTest, TheWorkerMayAskItToEnd) {
  start();
  ASSERT_TRUE(attach());
  worker_->request_shutdown();
  EXPECT_TRUE(ends());
  EXPECT_TRUE(worker_->told_to_stop());
  EXPECT_FALSE(connect());
}

TEST_F(ServerTest, WithoutAWorkerForTooLongRequestsAreRefusedUntilOneAttaches) {
  options_.worker_timeout = std::chrono::milliseconds(20);
  wait_too_long_for_a_worker();
}

TEST_F(ServerTest, AWorkerThatComesInTimeEndsTheWaitForOne) {
  options_.worker_timeout = core::seconds(2);
  start();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  worker_.reset();
  ASSERT_TRUE(attach());
  const auto over = core::Clock::now() + options_.worker_timeout + std::chrono::milliseconds(200);
  EXPECT_TRUE(eventually([&] { return core::Clock::now() > over; }));
  EXPECT_FALSE(log_.has("no worker is attached: requests are refused")) << log_.text();
}

TEST_F(ServerTest, AfterALongWaitForAWorkerTheNextIsWaitedForAsLong) {
  options_.worker_timeout = core::seconds(2);
  ASSERT_NO_FATAL_FAILURE(wait_too_long_for_a_worker());
  worker_->hangs = true;
  send_request(client_, bytes_of("patient"));
  worker_.reset();
  ASSERT_TRUE(attach());
  EXPECT_EQ(next(), response(bytes_of("tneitap")));
}

TEST_F(ServerTest, AHangupSetsTheTimeLimitsOfItsThreads) {
  start_with_a_file();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  ASSERT_TRUE(rereads("request-timeout = \"50ms\"\n")) << log_.text();
  worker_->hangs = true;
  send_request(client_, bytes_of("late"));
  EXPECT_EQ(next(), error(Refusal::request_timed_out));
}

TEST_F(ServerTest, AHangupSwitchesTheLogOfSlowRequestsOnAndOff) {
  start_with_a_file();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  const auto answers = [this](const char* text, const char* reversed) {
    send_request(client_, bytes_of(text));
    return next() == response(bytes_of(reversed));
  };
  // The thread writes the line of the first request before it answers the second.
  const auto is_logged = [&] {
    const std::size_t before = log_.text().size();
    EXPECT_TRUE(answers("one", "eno") && answers("three", "eerht"));
    return log_.text().find("of 3 bytes for ", before) != std::string::npos;
  };
  EXPECT_FALSE(is_logged()) << log_.text();
  ASSERT_TRUE(rereads("slow-request = \"1us\"\n")) << log_.text();
  // The thread takes a new limit some turns after the line of the reread.
  EXPECT_TRUE(eventually(is_logged)) << log_.text();
  ASSERT_TRUE(rereads("slow-request = \"0\"\n")) << log_.text();
  // In the next second, so that no line is missing because there were too many.
  const auto end = core::Clock::now() + std::chrono::milliseconds(1100);
  while (core::Clock::now() < end) is_logged();
  EXPECT_FALSE(is_logged()) << log_.text();
}

TEST_F(ServerTest, AHangupSetsTheTimeLimitOfAWaitForAWorker) {
  options_.worker_timeout = std::chrono::hours(1);
  start_with_a_file();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  worker_.reset();
  send_request(client_, bytes_of("lost"));
  ASSERT_TRUE(eventually([this] { return log_.has("is gone"); })) << log_.text();
  ASSERT_TRUE(rereads("worker-timeout = \"50ms\"\n")) << log_.text();
  EXPECT_EQ(next(), error(Refusal::worker_unavailable));
}

// ---- Several workers

TEST_F(ServerTest, AStandByTakesOverWhatIsUnanswered) {
  start();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  second_.emplace(options_.comch, protocol::kStandsBy);
  ASSERT_TRUE(eventually([this] { return second_->attached(); }));
  EXPECT_EQ(second_->channels(), 0U);
  worker_->hangs = true;
  send_request(client_, bytes_of("unanswered"));
  worker_.reset();
  EXPECT_EQ(next(), response(bytes_of("derewsnanu")));
  EXPECT_TRUE(eventually([this] { return second_->channels() == 1; }));
}

TEST_F(ServerTest, AWorkerThatAnswersNothingLosesItsChannels) {
  options_.worker_timeout = core::seconds(1);
  start();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  second_.emplace(options_.comch, protocol::kStandsBy);
  ASSERT_TRUE(eventually([this] { return second_->attached(); }));
  worker_->hangs = true;
  send_request(client_, bytes_of("stuck"));
  EXPECT_EQ(next(), response(bytes_of("kcuts")));
  EXPECT_TRUE(eventually([this] { return worker_->refused() == Refusal::worker_stuck; }));
  EXPECT_TRUE(log_.has("answered no request on channel 0")) << log_.text();
}

TEST_F(ServerTest, WithoutAnotherWorkerAStuckOnesRequestsAreRefused) {
  options_.worker_timeout = core::seconds(1);
  start();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  worker_->hangs = true;
  send_request(client_, bytes_of("stuck"));
  EXPECT_EQ(next(), error(Refusal::worker_unavailable));
}

TEST_F(ServerTest, ARequestUnansweredForTooLongIsRefused) {
  options_.request_timeout = std::chrono::milliseconds(50);
  start();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  worker_->hangs = true;
  send_request(client_, bytes_of("late"));
  EXPECT_EQ(next(), error(Refusal::request_timed_out));
  worker_->hangs = false;
  send_request(client_, bytes_of("next"));  // the late answer is dropped
  EXPECT_EQ(next(), response(bytes_of("txen")));
}

TEST_F(ServerTest, AWorkerThatLeavesEndsAlone) {
  start();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  worker_->request_detach();
  ASSERT_TRUE(eventually([this] { return worker_->told_to_stop(); }));
  EXPECT_EQ(worker_->reason(), protocol::ShutdownReason::released);
  send_request(client_, bytes_of("patient"));
  worker_.reset();
  ASSERT_TRUE(attach());
  EXPECT_EQ(next(), response(bytes_of("tneitap")));
}

TEST_F(ServerTest, TogetherAWorkerThatLeavesEndsTheServer) {
  options_.shutdown_together = true;
  start();
  ASSERT_TRUE(attach());
  worker_->request_detach();
  EXPECT_TRUE(ends());
  EXPECT_EQ(worker_->reason(), protocol::ShutdownReason::together);
}

TEST_F(ServerTest, AReplacementTakesTheChannelsAndTheFormerWorkerIsLetGo) {
  start();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  second_.emplace(options_.comch, protocol::kReplaces);
  ASSERT_TRUE(eventually([this] { return worker_->told_to_stop(); }));
  EXPECT_EQ(worker_->reason(), protocol::ShutdownReason::released);
  EXPECT_TRUE(eventually([this] { return second_->channels() == 1; }));
  send_request(client_, bytes_of("request"));
  EXPECT_EQ(next(), response(bytes_of("tseuqer")));
}

TEST_F(ServerTest, ATakenPortShowsAtOnce) {
  const core::Fd other =
      net::listen_tcp(net::resolve("127.0.0.1", options_.listen_port, true).front(), 1);
  EXPECT_THROW(Server(options_, signals_), core::Error);
}

}  // namespace
}  // namespace offload::server
