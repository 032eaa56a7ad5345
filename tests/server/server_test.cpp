#include "apps/server/server.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "net/stream.hpp"
#include "tests/comch/keys.hpp"
#include "tests/core/process/service_manager_socket.hpp"
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
  EXPECT_THROW(net::listen_tcp(net::resolve("127.0.0.1", options_.listen_port).front(), 1),
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

TEST_F(ServerTest, AHangupWithAWrongFileChangesNothing) {
  options_.admin = dir_.file("admin");
  start_with_a_file();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  std::ofstream(file_) << "request-timeout = \"soon\"\n";
  ::kill(::getpid(), SIGHUP);
  const std::string error = "error: SIGHUP: nothing was changed: " + file_ +
                            ":1:1: --request-timeout: 'soon' is not a time";
  EXPECT_TRUE(eventually([&] { return log_.has(error); })) << log_.text();
  EXPECT_NE(command("reload").find("409 "), std::string::npos);
  EXPECT_NE(command("reload").find("nothing was changed: the log has the reason"),
            std::string::npos);
  send_request(client_, bytes_of("still"));
  EXPECT_EQ(next(), response(bytes_of("llits")));
}

TEST_F(ServerTest, AHangupNamesWhatOnlyARestartChanges) {
  start_with_a_file();
  ASSERT_TRUE(attach());
  ASSERT_TRUE(rereads("threads = 2\n"));
  EXPECT_TRUE(log_.has("warning: changes only after a restart: threads ")) << log_.text();
}

/// Commands and what the server tells of itself.
class ServerWithAdmin : public ServerTest {
 protected:
  ServerWithAdmin() { options_.admin = dir_.file("admin"); }

  [[nodiscard]] std::string get(const std::string& path) const {
    return telemetry::ask_unix(options_.admin, "GET", path);
  }
  [[nodiscard]] nlohmann::json status() const {
    const std::string answer = get("/status");
    return nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n")))["state"];
  }
};

TEST_F(ServerWithAdmin, LogsAndShowsWhoServes) {
  options_.clients.memory = std::uint64_t{64} << 20;
  start();
  EXPECT_TRUE(eventually([this] { return log_.has("info: waiting for a worker on unix:"); }));
  EXPECT_NE(get("/readyz").find("503 "), std::string::npos);
  ASSERT_TRUE(attach());
  ASSERT_TRUE(enter());
  EXPECT_TRUE(log_.has("info: clients may use 64 MiB for ")) << log_.text();
  EXPECT_TRUE(log_.has(" serves 1 of 1 channels")) << log_.text();
  EXPECT_TRUE(eventually([this] { return get("/readyz").find("200 ") != std::string::npos; }));
  ASSERT_EQ(status()["workers"].size(), 1U);
  EXPECT_EQ(status()["workers"][0]["worker"], 1);
  EXPECT_EQ(status()["workers"][0]["backend"], "test");
  EXPECT_EQ(status()["workers"][0]["channels"], 1);
  ASSERT_TRUE(attach_stand_by());
  EXPECT_TRUE(eventually([this] { return status()["workers"].size() == 2; }));
  EXPECT_EQ(count_in_log(" serves 1 of 1 channels"), 1U) << "it is told once";
  worker_.reset();
  EXPECT_TRUE(eventually([this] {
    const auto workers = status()["workers"];
    return workers.size() == 1 && workers[0]["worker"] == 2 && workers[0]["channels"] == 1;
  }));
  EXPECT_TRUE(log_.has("worker 2")) << log_.text();
}

// It is told which channels it serves, as the first one was.
TEST_F(ServerWithAdmin, AWorkerMayComeAgain) {
  ASSERT_TRUE(begins());
  for (int i = 0; i < 2; ++i) {
    worker_.reset();
    ASSERT_TRUE(attach());
    EXPECT_TRUE(eventually([this] { return worker_->channels() == 1; })) << i;
    send_request(client_, bytes_of("request"));
    EXPECT_EQ(next(), response(bytes_of("tseuqer")));
  }
}

TEST_F(ServerWithAdmin, CommandsAreCarriedOutOrRefused) {
  ASSERT_TRUE(begins());
  EXPECT_TRUE(eventually([this] { return get("/readyz").find("200 ") != std::string::npos; }));
  EXPECT_NE(command("drain").find("200 "), std::string::npos);
  EXPECT_NE(get("/readyz").find("503 "), std::string::npos);
  send_request(client_, bytes_of("served"));
  EXPECT_EQ(next(), response(bytes_of("devres")));
  EXPECT_NE(command("undrain").find("200 "), std::string::npos);
  EXPECT_NE(get("/readyz").find("200 "), std::string::npos);
  EXPECT_NE(command("log-level?value=debug").find("the log level is debug"), std::string::npos);
  EXPECT_NE(command("detach").find("detach needs a worker's number"), std::string::npos);
  const std::string unknown = command("explode");
  EXPECT_NE(unknown.find("404 "), std::string::npos);
  EXPECT_NE(unknown.find("the commands are: log-level, reload, drain, undrain, detach"),
            std::string::npos);
}

TEST_F(ServerWithAdmin, AContentIsNamedOnceAfterItHasChanged) {
  const support::Authority authority("an authority");
  const net::TlsCertificate files = authority.issue("server", "DNS:server.test");
  options_.tls_certificate = files.chain_file;
  options_.tls_key = files.key_file;
  start_with_a_file();
  std::ofstream(file_) << "";
  ASSERT_TRUE(attach());
  std::ignore = authority.issue("server", "DNS:new.test");
  EXPECT_NE(command("reload").find("were reread"), std::string::npos);
  EXPECT_TRUE(log_.has("were reread: the content of " + files.key_file + ", the content of " +
                       files.chain_file) ||
              log_.has("were reread: the content of " + files.chain_file + ", the content of " +
                       files.key_file))
      << log_.text();
  log_.clear();
  EXPECT_NE(command("reload").find("were reread"), std::string::npos);
  EXPECT_TRUE(log_.has("were reread: nothing changed")) << log_.text();
}

// Workers keep their attachment while the keys change: the one that is shown must get the new key.
TEST_F(ServerWithAdmin, AReloadShowsWhichWorkersLackTheNewestKey) {
  const std::string key = dir_.file("key");
  comch::test::write_key_file(key);
  options_.comch = "tcp:127.0.0.1:" + std::to_string(net::test::free_port());
  options_.comch_security.key_files = {key};
  start_with_a_file();
  ASSERT_TRUE(attach());
  worker_->hangs = true;
  const auto shows = [this](bool has_newest) {
    return eventually([&] {
      const auto workers = status()["workers"];
      return workers.size() == 1 && workers[0]["has_newest_key"] == has_newest;
    });
  };
  EXPECT_TRUE(shows(true));
  comch::test::write_key_file(key);
  ASSERT_TRUE(rereads("")) << log_.text();
  EXPECT_TRUE(shows(false));
  worker_.reset();
  ASSERT_TRUE(attach());
  worker_->hangs = true;
  EXPECT_TRUE(shows(true));
}

TEST_F(ServerTest, ServesItsMetricsOverTcp) {
  const std::uint16_t port = net::test::free_port();
  options_.metrics = telemetry::MetricsAddress{"127.0.0.1", port};
  start();
  ASSERT_TRUE(attach());
  const auto page = [&] {
    EXPECT_TRUE(connect(port));
    test::send_all(client_, bytes_of("GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
                                     "Connection: close\r\n\r\n"));
    EXPECT_TRUE(eventually([this] { return received_.read(client_), received_.ended; }));
    return std::string(reinterpret_cast<const char*>(received_.bytes.data()),
                       received_.bytes.size());
  };
  // The server counts a worker some turns after the worker knows that it is attached.
  EXPECT_TRUE(eventually([&] {
    return page().find("\noffload_server_workers_attached 1\n") != std::string::npos;
  })) << page();
  EXPECT_NE(page().find("offload_build_info{program=\"offload-server\""), std::string::npos);
}

/// A server with a service manager, which outlives it.
class ServerAsService : core::test::ServiceManagerSocket, public ServerTest {
 protected:
  ServerAsService() {
    EXPECT_TRUE(bind(dir_.file("notify")));
    // A queue that is full of ticks would drop the next state.
    ::setenv("WATCHDOG_USEC", "60000000", 1);
  }
  /// Waits for a message with that text, of those that no earlier call has read.
  bool tells(const std::string& text) {
    return eventually([&] {
      std::string told;
      do {
        told = heard();
      } while (!told.empty() && told.find(text) == std::string::npos);
      return !told.empty();
    });
  }
};

TEST_F(ServerAsService, TellsItsManagerWhatItDoes) {
  options_.worker_timeout = std::chrono::milliseconds(200);
  start();
  EXPECT_TRUE(tells("waiting for the first worker"));
  ASSERT_TRUE(attach());
  EXPECT_TRUE(tells("serving"));
  worker_.reset();
  EXPECT_TRUE(tells("no worker is attached: requests wait"));
  EXPECT_TRUE(tells("no worker is attached: requests are refused"));
  EXPECT_EQ(
      count_in_log("warning: no worker is attached: requests are refused until one attaches\n"), 1U)
      << log_.text();
  ASSERT_TRUE(attach());
  EXPECT_TRUE(tells("serving"));
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(tells("answering the requests that were read"));
  EXPECT_TRUE(ends());
}

TEST_F(ServerAsService, TellsItsWatchdogAgainAndAgain) {
  ::setenv("WATCHDOG_USEC", "100000", 1);
  start();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(tells("WATCHDOG=1"));
}

TEST_F(ServerTest, ATakenPortShowsAtOnce) {
  const core::Fd other =
      net::listen_tcp(net::resolve("127.0.0.1", options_.listen_port).front(), 1);
  EXPECT_THROW(Server(options_, signals_), core::Error);
}

}  // namespace
}  // namespace offload::server
