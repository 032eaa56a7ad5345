#include "apps/server/io_thread.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/cpu.hpp"
#include "tests/server/fixtures/client_fixture.hpp"
#include "tests/server/fixtures/worker_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::server {
namespace {

using channel::Wakeup;
using protocol::Refusal;
using support::bytes_of;
using support::eventually;
using test::error;
using test::make_channel;
using test::response;
using test::send_request;

constexpr comch::WorkerId kWorker = 7;

/// A running thread; the test acts as its clients, its worker and the control thread.
class IoThreadTest : public testing::Test {
 protected:
  static constexpr int kDepth = 4;

  /// `length`: the length of the service's responses; null if the server does not know it.
  explicit IoThreadTest(kernels::ResponseLength length = kernels::response_length_of("reverse"))
      : thread_(config(length), channel_) {
    thread_.start();
  }

  static IoThread::Config config(kernels::ResponseLength length) {
    return {0, -1, {1000, length}, core::seconds(60), {}, {}, {}, [] {}};
  }

  void attach() { thread_.select_worker(kWorker); }
  void lose() { thread_.remove_worker(kWorker, comch::WorkerLoss::ended); }

  void connect() {
    auto [client, server] = test::connected_sockets();
    client_ = std::move(client);
    received_ = {};
    thread_.take(std::move(server));
  }

  /// Returns the next frame for the client, while the worker works.
  std::optional<test::Received::Frame> next(bool worker_works = true) {
    std::optional<test::Received::Frame> frame;
    eventually([&] {
      if (worker_works) worker_.serve_all();
      received_.read(client_);
      frame = received_.take();
      return frame.has_value() || received_.ended;
    });
    return frame;
  }

  bool client_ends() {
    return eventually([&] { return received_.read(client_), received_.ended; });
  }
  bool drains() {
    return eventually([&] { return thread_.drained(); });
  }

  // It cannot ring: the thread polls for its responses.
  std::shared_ptr<comch::WorkerChannel> channel_ = make_channel(kWorker, Wakeup::polling);
  test::Worker worker_{channel_->memory};
  IoThread thread_;
  core::Fd client_;
  test::Received received_;
};

TEST_F(IoThreadTest, AnswersRequests) {
  attach();
  connect();
  for (int i = 0; i < 3 * kDepth; ++i) {
    send_request(client_, bytes_of("request"));
    EXPECT_EQ(next(), response(bytes_of("tseuqer")));
  }
}

TEST_F(IoThreadTest, AWorkerThatRingsWakesIt) {
  const auto channel = make_channel(kWorker + 1, Wakeup::doorbell);
  test::Worker worker(channel->memory);
  thread_.add_worker(channel);
  thread_.select_worker(kWorker + 1);
  connect();
  channel::Ringer ringer = worker.ringer();
  for (int i = 0; i < 3; ++i) {
    send_request(client_, bytes_of("request"));
    ASSERT_TRUE(eventually([&] { return worker.serve(); }));
    ringer.ring();
    EXPECT_EQ(next(false), response(bytes_of("tseuqer")));
  }
}

TEST_F(IoThreadTest, CountsItsClients) {
  EXPECT_EQ(thread_.client_count(), 0U);
  connect();
  const core::Fd first = std::move(client_);
  connect();
  EXPECT_EQ(thread_.client_count(), 2U);
  client_.reset();
  EXPECT_TRUE(eventually([&] { return thread_.client_count() == 1; }));
}

TEST_F(IoThreadTest, WhatIsNoSocketIsTurnedAway) {
  const support::LogCapture log;
  thread_.take(core::Fd{});
  EXPECT_TRUE(eventually([&] { return thread_.client_count() == 0; }));
  thread_.stop();
  EXPECT_TRUE(log.has("is rejected")) << log.text();
}

// ---- The worker attaches and detaches

TEST_F(IoThreadTest, RequestsWaitForAWorker) {
  connect();
  send_request(client_, bytes_of("early"));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(worker_.has_request());
  attach();
  EXPECT_EQ(next(), response(bytes_of("ylrae")));
  EXPECT_EQ(thread_.serving(), kWorker);
}

TEST_F(IoThreadTest, WithoutAWorkerForTooLongTheyAreRefused) {
  attach();
  connect();
  send_request(client_, bytes_of("before"));
  ASSERT_TRUE(eventually([&] { return worker_.has_request(); }));
  lose();
  thread_.set_expired(true);
  EXPECT_EQ(next(false), error(Refusal::worker_unavailable));
  send_request(client_, bytes_of("after"));
  EXPECT_EQ(next(false), error(Refusal::worker_unavailable));

  const auto channel = make_channel(kWorker + 1, Wakeup::polling);
  test::Worker second(channel->memory);
  thread_.add_worker(channel);
  thread_.select_worker(kWorker + 1);
  ASSERT_TRUE(eventually([&] { return thread_.serving() == kWorker + 1; }));
  EXPECT_FALSE(second.has_request());  // a refused request is not sent again
  send_request(client_, bytes_of("again"));
  ASSERT_TRUE(eventually([&] { return second.serve(); }));
  EXPECT_EQ(next(false), response(bytes_of("niaga")));
}

TEST_F(IoThreadTest, WhatAWorkerThatIsGoneHadGoesToTheNext) {
  attach();
  connect();
  send_request(client_, bytes_of("1st"));
  ASSERT_TRUE(eventually([&] { return worker_.serve(); }));
  EXPECT_EQ(next(false), response(bytes_of("ts1")));
  for (const char* text : {"2nd", "3rd"}) send_request(client_, bytes_of(text));
  ASSERT_TRUE(eventually([&] { return worker_.has_request(); }));

  const auto channel = make_channel(kWorker + 1, Wakeup::polling);
  test::Worker second(channel->memory);
  thread_.add_worker(channel);
  lose();
  thread_.select_worker(kWorker + 1);
  ASSERT_TRUE(eventually([&] { return thread_.serving() == kWorker + 1; }));
  worker_.fail();  // the former one wakes up and writes
  worker_.fail();
  for (const char* text : {"dn2", "dr3"}) {
    ASSERT_TRUE(eventually([&] { return second.serve(); }));
    EXPECT_EQ(next(false), response(bytes_of(text)));
  }
}

TEST_F(IoThreadTest, TheNextWorkerIsRungForEachRequestThatTheFormerHad) {
  attach();
  connect();
  send_request(client_, bytes_of("request"));
  ASSERT_TRUE(eventually([&] { return worker_.serve(); }));
  EXPECT_EQ(next(false), response(bytes_of("tseuqer")));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(eventually([&] { return !worker_.has_request(); }));
    send_request(client_, bytes_of("request"));
    ASSERT_TRUE(eventually([&] { return worker_.has_request(); }));
    worker_.skip();
  }
  const auto channel = make_channel(kWorker + 1, Wakeup::doorbell);
  test::Worker second(channel->memory);
  thread_.add_worker(channel);
  lose();
  thread_.select_worker(kWorker + 1);
  channel::Waiter waiter = second.waiter();
  const auto is_rung = [&] {
    return eventually([&] {
      pollfd bell{waiter.fd(), POLLIN, 0};
      return ::poll(&bell, 1, 0) == 1;
    });
  };
  ASSERT_TRUE(eventually([&] { return second.has_request(); }));
  for (int i = 0; i < 2; ++i) {
    waiter.drain();
    waiter.arm();
    ASSERT_TRUE(second.serve());
    second.ringer().ring();
    EXPECT_EQ(next(false), response(bytes_of("tseuqer")));
    if (i == 1) send_request(client_, bytes_of("third"));
    EXPECT_TRUE(is_rung()) << i;
    ASSERT_TRUE(eventually([&] { return second.has_request(); }));
  }
}

TEST_F(IoThreadTest, AWorkerThatIsThereAnswersBeforeTheChannelMoves) {
  attach();
  connect();
  send_request(client_, bytes_of("first"));
  ASSERT_TRUE(eventually([&] { return worker_.has_request(); }));
  const auto channel = make_channel(kWorker + 1, Wakeup::polling);
  test::Worker second(channel->memory);
  thread_.add_worker(channel);
  thread_.select_worker(kWorker + 1);
  send_request(client_, bytes_of("second"));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(thread_.serving(), kWorker);
  EXPECT_FALSE(second.has_request());
  EXPECT_EQ(next(), response(bytes_of("tsrif")));
  ASSERT_TRUE(eventually([&] { return second.serve(); }));
  EXPECT_EQ(next(false), response(bytes_of("dnoces")));

  thread_.select_worker(kWorker);  // and back, to where it was left
  send_request(client_, bytes_of("third"));
  EXPECT_EQ(next(), response(bytes_of("driht")));
}

TEST_F(IoThreadTest, AResponseLongerThanTheServiceMayAnswerIsNone) {
  attach();
  connect();
  send_request(client_, bytes_of("short"));
  ASSERT_TRUE(eventually([&] { return worker_.has_request(); }));
  worker_.answer(bytes_of("longer than it"));
  EXPECT_EQ(next(false), error(Refusal::worker_failed));
}

// The server knows only the maximum length of all responses of a module's service.
class IoThreadOfAModulesService : public IoThreadTest {
 protected:
  IoThreadOfAModulesService() : IoThreadTest(nullptr) {}
};

TEST_F(IoThreadOfAModulesService, AResponseMayHaveWhatTheChannelSays) {
  attach();
  connect();
  for (const std::size_t length : {kernels::kLongestDigest, kernels::kLongestDigest + 1}) {
    send_request(client_, bytes_of("short"));
    ASSERT_TRUE(eventually([&] { return worker_.has_request(); }));
    const support::Bytes answer(length);
    worker_.answer(answer);
    EXPECT_EQ(next(false),
              length == kernels::kLongestDigest ? response(answer) : error(Refusal::worker_failed));
  }
}

/// A thread whose control thread hears of failures.
class IoThreadFailures : public testing::Test {
 protected:
  void start(core::Duration worker_timeout) {
    auto config = IoThread::Config{0,
                                   -1,
                                   {1000, kernels::response_length_of("reverse")},
                                   worker_timeout,
                                   {},
                                   {},
                                   [this](const WorkerFailure& failure) {
                                     if (failure.stuck) ++stuck_;
                                     if (!failure.stuck) ++broken_;
                                   },
                                   [] {}};
    thread_.emplace(config, channel_);
    thread_->start();
    thread_->select_worker(kWorker);
  }

  std::shared_ptr<comch::WorkerChannel> channel_ = make_channel(kWorker, Wakeup::polling);
  std::atomic<int> stuck_{0};
  std::atomic<int> broken_{0};
  std::optional<IoThread> thread_;
};

TEST_F(IoThreadFailures, ALineThatBreaksIsReported) {
  channel_ = make_channel(kWorker, Wakeup::engine);
  channel_->endpoint = std::make_unique<test::BrokenLine>();
  start(core::seconds(60));
  EXPECT_TRUE(eventually([&] { return broken_ == 1; }));
  EXPECT_EQ(thread_->serving(), 0U);
}

TEST_F(IoThreadFailures, AWorkerThatAnswersNothingIsReportedOnce) {
  start(std::chrono::milliseconds(50));
  auto [client, server] = test::connected_sockets();
  thread_->take(std::move(server));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(stuck_, 0);  // it owes nothing
  send_request(client, bytes_of("request"));
  EXPECT_TRUE(eventually([&] { return stuck_ == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  EXPECT_EQ(stuck_, 1);
}

// The control thread is told, which ends the server.
TEST(IoThreadFailure, EndsItsClientsAndIsThrownAgain) {
  const auto channel = make_channel(kWorker, Wakeup::engine);
  channel->endpoint = std::make_unique<test::BrokenLine>();
  std::atomic<int> woken{0};
  IoThread thread({0,
                   -1,
                   {1000, kernels::response_length_of("reverse")},
                   core::seconds(60),
                   {},
                   {},
                   [](const WorkerFailure&) {
                     throw core::Error(core::ErrorCode::driver, "it cannot be reported");
                   },
                   [&] { ++woken; }},
                  channel);
  thread.start();
  auto [client, server] = test::connected_sockets();
  thread.take(std::move(server));
  EXPECT_NO_THROW(thread.check());
  thread.select_worker(kWorker);
  test::Received received;
  EXPECT_TRUE(eventually([&, &own = client] { return received.read(own), received.ended; }));
  EXPECT_THROW(thread.check(), core::Error);
  EXPECT_EQ(woken, 2) << "for the worker, and for the failure";
}

TEST(IoThreadMoves, TheControlThreadHearsOfEach) {
  std::atomic<int> moves{0};
  IoThread thread({0,
                   -1,
                   {1000, kernels::response_length_of("reverse")},
                   core::seconds(60),
                   {},
                   {},
                   {},
                   [&] { ++moves; }},
                  make_channel(kWorker, Wakeup::polling));
  thread.start();
  thread.select_worker(kWorker);
  EXPECT_TRUE(eventually([&] { return moves == 1; }));
  EXPECT_EQ(thread.serving(), kWorker);
  thread.remove_worker(kWorker, comch::WorkerLoss::ended);
  EXPECT_TRUE(eventually([&] { return moves == 2; }));
  EXPECT_EQ(thread.serving(), 0U);
}

// ---- Its end

TEST_F(IoThreadTest, DrainedItAnswersWhatWasReadAndTakesNoMore) {
  connect();
  send_request(client_, bytes_of("request"));
  attach();
  ASSERT_TRUE(eventually([&] { return worker_.has_request(); }));  // so it was read
  EXPECT_FALSE(thread_.drained());
  thread_.drain();
  EXPECT_EQ(next(), response(bytes_of("tseuqer")));
  EXPECT_TRUE(client_ends());
  client_.reset();
  EXPECT_TRUE(drains());
  EXPECT_EQ(thread_.client_count(), 0U);
}

TEST_F(IoThreadTest, WithoutAWorkerDrainingRefuses) {
  attach();
  connect();
  send_request(client_, bytes_of("request"));
  ASSERT_TRUE(eventually([&] { return worker_.has_request(); }));
  thread_.drain();
  lose();  // while it is drained
  EXPECT_EQ(next(false), error(Refusal::shutting_down));
  EXPECT_TRUE(client_ends());
  client_.reset();
  EXPECT_TRUE(drains());
}

// Both orders are there before the thread looks for any.
TEST(IoThreadDrain, AClientThatComesWithTheOrderToDrainIsDrainedToo) {
  IoThread thread(
      {0, -1, {1000, kernels::response_length_of("reverse")}, core::seconds(60), {}, {}, {}, [] {}},
      make_channel(kWorker, Wakeup::polling));
  auto [client, server] = test::connected_sockets();
  thread.take(std::move(server));
  thread.drain();
  thread.start();
  test::Received received;
  EXPECT_TRUE(eventually([&, &own = client] { return received.read(own), received.ended; }));
  client.reset();
  EXPECT_TRUE(eventually([&] { return thread.drained(); }));
}

TEST(IoThreadDrain, AHandshakeUnderWayIsEnded) {
  IoThread thread(
      {0, -1, {1000, kernels::response_length_of("reverse")}, core::seconds(60), {}, {}, {}, [] {}},
      make_channel(kWorker, Wakeup::polling));
  const auto turn = [&] {
    for (int i = 0; i < 10; ++i) thread.turn({});
  };
  thread.open();
  thread.set_tls(net::TlsContext::psk_server({{"key", support::random_bytes(32, 1)}}));
  auto [client, server] = test::connected_sockets();
  thread.take(std::move(server));
  turn();
  std::byte byte{};
  EXPECT_LT(::recv(client.get(), &byte, 1, 0), 0);  // it waits for the client's first words
  thread.drain();
  turn();
  EXPECT_EQ(::recv(client.get(), &byte, 1, 0), 0);
  EXPECT_TRUE(thread.drained());
}

TEST_F(IoThreadTest, WithoutClientsItIsDrainedAtOnce) {
  thread_.drain();
  EXPECT_TRUE(drains());
}

TEST_F(IoThreadTest, StopEndsItWithAllClients) {
  const support::LogCapture log;
  attach();
  connect();
  send_request(client_, bytes_of("1"));
  EXPECT_EQ(next(), response(bytes_of("1")));
  thread_.stop();
  EXPECT_TRUE(client_ends());
  EXPECT_TRUE(log.has("I/O thread 0: 1 connections, 1 responses, 0 refusals")) << log.text();
  thread_.stop();  // once
}

TEST(IoThreadProcessor, IsTheOneThatWasChosen) {
  const int cpu = core::allowed_cpus().front();
  IoThread thread(
      {0, cpu, {1000, kernels::response_length_of("reverse")}, core::seconds(60), {}, {}, {}, {}},
      make_channel(kWorker, Wakeup::polling));
  thread.start();
  std::string allowed;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string line;
    if (!std::getline(status, line) || line != "Name:\tio-0") continue;
    while (std::getline(status, line) && !line.starts_with("Cpus_allowed_list:")) continue;
    allowed = line;
  }
  EXPECT_EQ(allowed, "Cpus_allowed_list:\t" + std::to_string(cpu));
}

TEST_F(IoThreadTest, CannotRunOnAProcessorThatIsNotThere) {
  auto nowhere = config(nullptr);
  nowhere.cpu = 1 << 20;
  IoThread thread(nowhere, channel_);
  EXPECT_THROW(thread.start(), core::Error);
}

}  // namespace
}  // namespace offload::server
