#include "apps/server/server.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <exception>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "net/stream.hpp"
#include "tests/server/fixtures/server_fixture.hpp"
#include "tests/support/certificates.hpp"

namespace offload::server {
namespace {

using protocol::Refusal;
using support::bytes_of;
using test::error;
using test::response;
using test::send_request;
using test::ServerTest;

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
  ASSERT_TRUE(begins());
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
  ASSERT_TRUE(begins());
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

/// With two threads, and a client of each: connections are dealt in turn.
class ServerWithTwoThreads : public ServerTest {
 protected:
  ServerWithTwoThreads() { options_.threads = 2; }

  void enter_both() {
    ASSERT_TRUE(attach());
    ASSERT_TRUE(enter());
    other_ = std::move(client_);
    ASSERT_TRUE(connect());
  }
  /// Has each client send a request; returns whether each gets that frame.
  bool both_get(const test::Received::Frame& expected) {
    for (int i = 0; i < 2; ++i) {
      std::swap(client_, other_);
      send_request(client_, bytes_of("request"));
      if (next() != expected) return false;
    }
    return true;
  }
  bool both_end() {
    for (int i = 0; i < 2; ++i) {
      std::swap(client_, other_);
      received_ = {};
      if (!eventually([this] { return received_.read(client_), received_.ended; })) return false;
      client_.reset();
    }
    return true;
  }

  core::Fd other_;
};

TEST_F(ServerWithTwoThreads, AHangupSetsTheTimeLimitsOfItsThreads) {
  start_with_a_file();
  enter_both();
  ASSERT_TRUE(both_get(response(bytes_of("tseuqer"))));
  ASSERT_TRUE(rereads("request-timeout = \"50ms\"\n")) << log_.text();
  worker_->hangs = true;
  EXPECT_TRUE(both_get(error(Refusal::request_timed_out)));
}

TEST_F(ServerWithTwoThreads, AHangupSwitchesTheLogOfSlowRequestsOfItsThreadsOn) {
  options_.admin = dir_.file("admin");
  start_with_a_file();
  enter_both();
  std::ofstream(file_) << "slow-request = \"1us\"\n";
  ASSERT_NE(command("reload").find("were reread"), std::string::npos) << log_.text();
  // A thread takes the new limit some turns later.
  for (int i = 0; i < 2; ++i) {
    std::swap(client_, other_);
    const std::size_t before = log_.text().size();
    EXPECT_TRUE(eventually([&] {
      send_request(client_, bytes_of("request"));
      return next().has_value() && log_.text().find("of 7 bytes for ", before) != std::string::npos;
    })) << i;
  }
}

TEST_F(ServerWithTwoThreads, WithoutAWorkerForTooLongEachRefusesUntilOneAttaches) {
  options_.worker_timeout = std::chrono::milliseconds(20);
  start();
  enter_both();
  worker_.reset();
  ASSERT_TRUE(both_get(error(Refusal::worker_unavailable)));
  ASSERT_TRUE(attach());
  // The threads hear of that worker after the worker does: until then they refuse.
  EXPECT_TRUE(eventually([this] { return both_get(response(bytes_of("tseuqer"))); }));
}

TEST_F(ServerWithTwoThreads, ItsEndDrainsEach) {
  options_.shutdown_timeout = std::chrono::hours(1);
  start();
  enter_both();
  ASSERT_TRUE(both_get(response(bytes_of("tseuqer"))));
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(both_end());
  EXPECT_TRUE(ends());
}

TEST_F(ServerWithTwoThreads, AReloadSetsTheCertificateOfEach) {
  const support::Authority authority("an authority");
  const auto install = [&](const char* name) { return authority.issue("server", name); };
  const net::TlsCertificate files = install("DNS:old.test");
  options_.tls_certificate = files.chain_file;
  options_.tls_key = files.key_file;
  options_.admin = dir_.file("admin");
  start_with_a_file();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(eventually([this] { return log_.has("listening on"); }));
  std::vector<net::Stream> clients;  // stay, so that the next comes to the other thread
  const auto is_named = [&](const char* name) {
    if (!connect()) return false;
    net::Stream& client = clients.emplace_back(std::move(client_),
                                               net::TlsContext::client(name, authority.ca_file()));
    auto state = net::TlsHandshake::under_way;
    eventually([&] { return (state = client.handshake()) != net::TlsHandshake::under_way; });
    return state == net::TlsHandshake::done;
  };
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(is_named("old.test")) << i;
  install("DNS:new.test");
  std::ofstream(file_) << "";
  ASSERT_NE(command("reload").find("were reread"), std::string::npos) << log_.text();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(is_named("new.test")) << i;
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

TEST_F(ServerTest, AHangupSetsTheTimeOfAShutdown) {
  options_.shutdown_timeout = options_.worker_timeout = std::chrono::hours(1);
  start_with_a_file();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  ASSERT_TRUE(rereads("shutdown-timeout = \"50ms\"\n")) << log_.text();
  worker_->hangs = worker_->stays = true;
  send_request(client_, bytes_of("unanswered"));
  ASSERT_TRUE(eventually([this] { return worker_->has_request(); }));
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(ends());
  EXPECT_TRUE(log_.has("not all clients could be answered in time")) << log_.text();
}

TEST_F(ServerTest, ATakenPortShowsAtOnce) {
  const core::Fd other =
      net::listen_tcp(net::resolve("127.0.0.1", options_.listen_port, true).front(), 1);
  EXPECT_THROW(Server(options_, signals_), core::Error);
}

}  // namespace
}  // namespace offload::server
