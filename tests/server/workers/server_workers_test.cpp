#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <string>

#include "tests/server/fixtures/server_fixture.hpp"

/// Workers that come and go, and the end of a server.
namespace offload::server {
namespace {

using protocol::Refusal;
using support::bytes_of;
using test::error;
using test::response;
using test::send_request;
using test::ServerTest;

TEST_F(ServerTest, AStandByTakesOverWhatIsUnanswered) {
  ASSERT_TRUE(begins());
  ASSERT_TRUE(attach_stand_by());
  EXPECT_EQ(second_->channels(), 0U);
  worker_->hangs = true;
  send_request(client_, bytes_of("unanswered"));
  worker_.reset();
  EXPECT_EQ(next(), response(bytes_of("derewsnanu")));
  EXPECT_TRUE(eventually([this] { return second_->channels() == 1; }));
}

TEST_F(ServerTest, AWorkerThatAnswersNothingLosesItsChannels) {
  options_.worker_timeout = core::seconds(1);
  ASSERT_TRUE(begins());
  ASSERT_TRUE(attach_stand_by());
  worker_->hangs = true;
  send_request(client_, bytes_of("stuck"));
  EXPECT_EQ(next(), response(bytes_of("kcuts")));
  EXPECT_TRUE(eventually([this] { return worker_->refused() == Refusal::worker_stuck; }));
  EXPECT_TRUE(eventually([this] { return log_.has("answered no request on channel 0"); }));
}

TEST_F(ServerTest, WithoutAnotherWorkerAStuckOnesRequestsAreRefused) {
  options_.worker_timeout = core::seconds(1);
  ASSERT_TRUE(begins());
  worker_->hangs = true;
  send_request(client_, bytes_of("stuck"));
  EXPECT_EQ(next(), error(Refusal::worker_unavailable));
}

TEST_F(ServerTest, ARequestUnansweredForTooLongIsRefused) {
  options_.request_timeout = std::chrono::milliseconds(50);
  ASSERT_TRUE(begins());
  worker_->hangs = true;
  send_request(client_, bytes_of("late"));
  EXPECT_EQ(next(), error(Refusal::request_timed_out));
  worker_->hangs = false;
  send_request(client_, bytes_of("next"));  // the late answer is dropped
  EXPECT_EQ(next(), response(bytes_of("txen")));
}

TEST_F(ServerTest, AWorkerThatLeavesEndsAlone) {
  ASSERT_TRUE(begins());
  worker_->request_detach();
  ASSERT_TRUE(eventually([this] { return worker_->told_to_stop(); }));
  EXPECT_EQ(worker_->reason(), protocol::ShutdownReason::released);
  send_request(client_, bytes_of("patient"));
  worker_.reset();
  ASSERT_TRUE(attach());
  EXPECT_EQ(next(), response(bytes_of("tneitap")));
}

TEST_F(ServerTest, TheWaitForTheNextWorkerBeginsAsOneIsDetached) {
  options_.admin = dir_.file("admin");
  options_.worker_timeout = std::chrono::milliseconds(50);
  ASSERT_TRUE(begins());
  worker_->stays = true;  // so it is not lost, which begins the wait as well
  EXPECT_NE(command("detach?value=2").find("there is no worker '2'"), std::string::npos);
  EXPECT_NE(command("detach?value=1").find("worker 1 detaches"), std::string::npos);
  EXPECT_TRUE(eventually([this] {
    send_request(client_, bytes_of("1"));
    return next() == error(Refusal::worker_unavailable);
  }));
  EXPECT_TRUE(eventually([this] { return worker_->told_to_stop(); }));
}

TEST_F(ServerTest, AWorkerThatLeavesIsLetGoOnceItHasAnswered) {
  ASSERT_TRUE(begins());
  worker_->hangs = true;
  send_request(client_, bytes_of("unanswered"));
  ASSERT_TRUE(eventually([this] { return worker_->has_request(); }));
  worker_->request_detach();
  ASSERT_TRUE(eventually([this] { return worker_->channels() == 0; }));
  const auto over = core::Clock::now() + std::chrono::milliseconds(100);  // many turns
  ASSERT_TRUE(eventually([&] { return core::Clock::now() > over; }));
  EXPECT_FALSE(worker_->told_to_stop());
  worker_->hangs = false;
  EXPECT_EQ(next(), response(bytes_of("derewsnanu")));
  EXPECT_TRUE(eventually([this] { return worker_->told_to_stop(); }));
}

TEST_F(ServerTest, AtItsEndItAnswersWhatItHasRead) {
  options_.shutdown_timeout = core::seconds(20);
  ASSERT_TRUE(begins());
  worker_->hangs = true;
  send_request(client_, bytes_of("unanswered"));
  ASSERT_TRUE(eventually([this] { return worker_->has_request(); }));
  ::kill(::getpid(), SIGTERM);
  ASSERT_TRUE(eventually([this] { return log_.has("SIGTERM: shutting down"); }));
  const auto over = core::Clock::now() + std::chrono::milliseconds(100);
  ASSERT_TRUE(eventually([&] { return core::Clock::now() > over; }));
  EXPECT_FALSE(worker_->told_to_stop());
  worker_->hangs = false;
  EXPECT_EQ(next(), response(bytes_of("derewsnanu")));
  EXPECT_TRUE(eventually([this] { return received_.read(client_), received_.ended; }));
  EXPECT_TRUE(ends());
  EXPECT_EQ(worker_->reason(), protocol::ShutdownReason::server_leaves);
  EXPECT_FALSE(log_.has("in time")) << log_.text();
}

TEST_F(ServerTest, ItsEndIsBoundedWhateverItsWorkerDoes) {
  options_.shutdown_timeout = core::seconds(1);
  ASSERT_TRUE(begins());
  worker_->hangs = worker_->stays = true;
  send_request(client_, bytes_of("unanswered"));
  ASSERT_TRUE(eventually([this] { return worker_->has_request(); }));
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(ends());
  EXPECT_TRUE(worker_->told_to_stop());
  EXPECT_TRUE(log_.has("not all clients could be answered in time")) << log_.text();
  EXPECT_TRUE(log_.has("not all workers confirmed that they have stopped"));
}

// A checksum is longer than short requests: no response of the other ports is.
TEST_F(ServerTest, EachPortHasItsServiceAndItsThreads) {
  const std::uint16_t second_port = net::test::free_port();
  const std::uint16_t third_port = net::test::free_port();
  options_.threads = 2;
  options_.listens.push_back({second_port, "echo"});
  options_.listens.push_back({third_port, "crc32c"});
  start();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(attach_stand_by());
  ASSERT_TRUE(enter());
  const auto answers = [this](std::uint16_t port, const char* request, const char* expected) {
    if (!connect(port)) return false;
    send_request(client_, bytes_of(request));
    return next() == response(bytes_of(expected));
  };
  const auto all_answer = [&] {
    for (int i = 0; i < 3; ++i) {  // more than the threads of a port
      EXPECT_TRUE(answers(options_.listen_port, "ab", "ba"));
      EXPECT_TRUE(answers(second_port, "ab", "ab"));
      EXPECT_TRUE(answers(third_port, "ab", "\x36\x29\xa2\xe2"));
    }
  };
  ASSERT_TRUE(eventually([this] { return worker_->channels() == 6; }));
  all_answer();
  worker_.reset();
  EXPECT_TRUE(eventually([this] { return second_->channels() == 6; }));
  all_answer();
}

TEST_F(ServerTest, RepliesToCommands) {
  options_.admin = dir_.file("admin");
  start_with_a_file();
  EXPECT_EQ(telemetry::ask_unix(options_.admin, "GET", "/readyz").substr(9, 3), "503");
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  const auto status = [this](const char* what) { return command(what).substr(9, 3); };
  const auto readiness = [this] {
    return telemetry::ask_unix(options_.admin, "GET", "/readyz").substr(9, 3);
  };
  EXPECT_TRUE(eventually([&] { return readiness() == "200"; }));
  EXPECT_EQ(status("drain"), "200");
  EXPECT_EQ(readiness(), "503");
  EXPECT_EQ(status("undrain"), "200");
  EXPECT_EQ(readiness(), "200");
  EXPECT_EQ(status("log-level?value=loud"), "409");
  EXPECT_EQ(status("reload"), "409");  // its file is missing
  std::ofstream(file_) << "request-timeout = \"1s\"\n";
  EXPECT_EQ(status("reload"), "200");
  EXPECT_EQ(status("detach"), "409");
  EXPECT_EQ(status("restart"), "404");
}

TEST_F(ServerTest, TogetherAWorkerThatLeavesEndsTheServer) {
  options_.shutdown_together = true;
  start();
  ASSERT_TRUE(attach());
  worker_->request_detach();
  EXPECT_TRUE(ends());
  EXPECT_TRUE(log_.has("a worker is shutting down: shutting down with it"));
  EXPECT_EQ(worker_->reason(), protocol::ShutdownReason::together);
}

TEST_F(ServerTest, AReplacementTakesTheChannelsAndTheFormerWorkerIsLetGo) {
  ASSERT_TRUE(begins());
  second_.emplace(address(), protocol::kReplaces);
  ASSERT_TRUE(eventually([this] { return worker_->told_to_stop(); }));
  EXPECT_EQ(worker_->reason(), protocol::ShutdownReason::released);
  EXPECT_TRUE(eventually([this] { return second_->channels() == 1; }));
  send_request(client_, bytes_of("request"));
  EXPECT_EQ(next(), response(bytes_of("tseuqer")));
}

TEST_F(ServerTest, WorkersThatAttachInOneTurnAreAllThere) {
  const auto halt = std::make_shared<test::Halt>("SIGHUP: ");
  spdlog::default_logger()->sinks().push_back(halt);
  start_with_a_file();
  worker_.emplace(address());
  second_.emplace(address());
  // The server has sent both their channels, and finds both answers in its next turn.
  second_->before_it_attaches = [&] {
    ::kill(::getpid(), SIGHUP);
    EXPECT_TRUE(support::eventually([&] { return halt->reached(); }));
  };
  worker_->before_it_attaches = [&] {
    EXPECT_TRUE(support::eventually([this] { return second_->has_channels(); },
                                    [this] { second_->turn(); }));
  };
  EXPECT_TRUE(
      support::eventually([this] { return worker_->has_channels(); }, [this] { worker_->turn(); }));
  halt->go_on();
  ASSERT_TRUE(eventually([this] { return worker_->attached() && second_->attached(); }));
  ASSERT_TRUE(enter());
  const auto serves = [](const test::TestWorker& worker) { return worker.channels() == 1; };
  ASSERT_TRUE(eventually([&] { return serves(*worker_) || serves(*second_); }));
  (serves(*worker_) ? worker_ : second_).reset();
  send_request(client_, bytes_of("request"));
  EXPECT_EQ(next(), response(bytes_of("tseuqer")));
}

}  // namespace
}  // namespace offload::server
