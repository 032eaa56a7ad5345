// The functions of offload_client.h, with servers that do anything.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "tests/clients/cpp/fake_server.hpp"
#include "tests/support/certificates.hpp"

namespace offload::clients {
namespace {

using O = offload_client_options;

void answer(Peer& peer) {
  peer.take({"hello"});
  peer.send(frame("olleh"));
}
void wait_for_end(Peer& peer) {
  EXPECT_TRUE(peer.sees_end());
}
/// Answers one request once it is late, and the next one at once.
FakeServer::Script answer_late_once(const std::atomic<bool>& is_late) {
  return [&is_late](Peer& peer) {
    peer.take({"late"});
    EXPECT_TRUE(support::eventually([&] { return is_late.load(); }));
    peer.send(frame("etal"));
    answer(peer);
    wait_for_end(peer);
  };
}

TEST(ClientLibrary, OneRequest) {
  const FakeServer server({[](Peer& peer) {
    answer(peer);
    EXPECT_EQ(peer.received(), frame("hello", protocol::MessageId::client_request));
    wait_for_end(peer);
  }});
  Opened opened(server.port());
  ASSERT_EQ(opened.status, OFFLOAD_OK) << opened.error();
  EXPECT_EQ(opened.call("hello"), OFFLOAD_OK);
  EXPECT_EQ(opened.text(), "olleh");
  EXPECT_EQ(opened.wait(), OFFLOAD_IDLE);
}

TEST(ClientLibrary, AnAddressOfVersion6) {
  const FakeServer server({answer}, "::1");
  Opened opened(server.port(), with(&O::host, "::1"));
  EXPECT_EQ(opened.call("hello"), OFFLOAD_OK);
}

TEST(ClientLibrary, RequestsInFlightComeBackWithTheirTags) {
  const FakeServer server({[](Peer& peer) {
    peer.take({"one", "two", "three"});
    peer.send(frame("1") + frame("2") + frame("3"));
    wait_for_end(peer);
  }});
  Opened opened(server.port(), with(&O::max_in_flight, 3));
  EXPECT_EQ(opened.submit("one", 11), OFFLOAD_OK);
  EXPECT_EQ(opened.submit("two", 12), OFFLOAD_OK);
  EXPECT_EQ(opened.submit("three", 13), OFFLOAD_OK);
  EXPECT_EQ(opened.submit("four", 14), OFFLOAD_FULL);
  EXPECT_EQ(opened.call("hello"), OFFLOAD_BUSY);
  for (const std::uint64_t tag : {11U, 12U, 13U}) {
    ASSERT_EQ(opened.wait(), OFFLOAD_OK);
    EXPECT_EQ(opened.response.tag, tag);
    EXPECT_EQ(opened.text(), std::to_string(tag - 10));
  }
  EXPECT_EQ(opened.wait(), OFFLOAD_IDLE);
}

TEST(ClientLibrary, ALateResponseIsGivenToNoOtherRequest) {
  std::atomic<bool> is_late = false;
  const FakeServer server({answer_late_once(is_late)});
  Opened opened(server.port());
  EXPECT_EQ(opened.call("late", 30), OFFLOAD_TIMED_OUT);
  EXPECT_EQ(opened.error(), "no response within the time limit");
  is_late = true;
  EXPECT_EQ(opened.call("hello"), OFFLOAD_OK);
  EXPECT_EQ(opened.text(), "olleh");
}

TEST(ClientLibrary, ATrickleDoesNotProlongTheTime) {
  std::atomic<bool> is_over = false;
  const FakeServer server({[&](Peer& peer) {
    peer.take({"hello"});
    peer.send(header(1012, 5, 1000));
    support::eventually([&] {
      peer.send("x");
      return is_over.load();
    });
  }});
  Opened opened(server.port());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(opened.call("hello", 100), OFFLOAD_TIMED_OUT);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, support::kBound);
  is_over = true;
}

TEST(ClientLibrary, TheDescriptorTellsOfResponsesAndTimeouts) {
  std::atomic<bool> may_answer = false;
  const FakeServer server({[&](Peer& peer) {
    peer.take({"hello"});
    EXPECT_TRUE(support::eventually([&] { return may_answer.load(); }));
    peer.send(frame("olleh"));
    peer.take({"other"});
    wait_for_end(peer);
  }});
  Opened opened(server.port());
  pollfd ready{offload_client_fd(opened.client), POLLIN, 0};
  EXPECT_EQ(opened.submit("hello"), OFFLOAD_OK);
  EXPECT_EQ(opened.wait(0), OFFLOAD_NOTHING);
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  may_answer = true;
  ASSERT_EQ(::poll(&ready, 1, 20000), 1);
  EXPECT_EQ(opened.wait(0), OFFLOAD_OK);
  EXPECT_EQ(opened.wait(0), OFFLOAD_IDLE);
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  EXPECT_EQ(opened.submit("other", 0, 50), OFFLOAD_OK);
  EXPECT_EQ(opened.wait(0), OFFLOAD_NOTHING);
  ASSERT_EQ(::poll(&ready, 1, 20000), 1);
  EXPECT_EQ(opened.wait(0), OFFLOAD_OK);
  EXPECT_EQ(opened.response.status, OFFLOAD_TIMED_OUT);
  EXPECT_EQ(opened.wait(0), OFFLOAD_IDLE);
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
}

TEST(ClientLibrary, AServerThatIsGone) {
  const FakeServer server({[](Peer& peer) {
    peer.take({"hello"});
    peer.send(frame("olleh").substr(0, 14));
  }});
  Opened opened(server.port());
  EXPECT_EQ(opened.call("hello"), OFFLOAD_LOST);
  EXPECT_EQ(opened.error(), "the server closed the connection inside a frame");
  EXPECT_EQ(opened.call("hello"), OFFLOAD_LOST);
  EXPECT_EQ(opened.submit("hello"), OFFLOAD_LOST);
  EXPECT_EQ(opened.wait(), OFFLOAD_IDLE);
}

TEST(ClientLibrary, AMalformedFrameEndsTheConnection) {
  const FakeServer server({[](Peer& peer) {
    peer.take({"hello"});
    peer.send(header(0xffffffff, 5, 0xfffffff3));
    wait_for_end(peer);
  }});
  Opened opened(server.port(), with(&O::reconnect_timeout, 10000));
  EXPECT_EQ(opened.call("hello"), OFFLOAD_MALFORMED);
  EXPECT_EQ(opened.call("hello"), OFFLOAD_LOST);
}

TEST(ClientLibrary, TheServersLastMessageIsReadWhenSendingFails) {
  const FakeServer server({[](Peer& peer) {
    peer.take({""});  // the first bytes of a request that the socket cannot take whole
    peer.send(error_frame(23, "full"));
    peer.reset();
  }});
  Opened opened(server.port());
  EXPECT_EQ(opened.call(std::string(8 << 20, 'x')), OFFLOAD_TOO_MANY_CLIENTS);
  EXPECT_EQ(opened.error(), "the server closed the connection: too_many_clients (23): full");
}

TEST(ClientLibrary, ACallTakesLateResponsesOfTheFormerOnes) {
  std::atomic<bool> is_late = false;
  const FakeServer server({answer_late_once(is_late)});
  Opened opened(server.port(), with(&O::max_in_flight, 1));
  EXPECT_EQ(opened.call("late", 30), OFFLOAD_TIMED_OUT);
  EXPECT_EQ(opened.call("hello"), OFFLOAD_FULL);
  is_late = true;
  EXPECT_TRUE(support::eventually([&] { return opened.call("hello") == OFFLOAD_OK; }));
  EXPECT_EQ(opened.text(), "olleh");
}

TEST(ClientLibrary, TheConnectionEndsThoughAForkedProcessHasIt) {
  std::atomic<bool> has_ended = false;
  const FakeServer server({[&](Peer& peer) { has_ended = peer.sees_end(); }});
  pid_t child = -1;
  {
    const Opened opened(server.port());
    ASSERT_EQ(opened.status, OFFLOAD_OK);
    child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  EXPECT_TRUE(support::eventually([&] { return has_ended.load(); }));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(ClientLibrary, IdempotentRequestsAreSentAgain) {
  const FakeServer server({[](Peer& peer) { peer.take({"hello"}); },
                           [](Peer& peer) { peer.take({"hello"}); },
                           [](Peer& peer) {
                             answer(peer);
                             wait_for_end(peer);
                           }});
  Opened opened(server.port(), with(&O::reconnect_timeout, 20000));
  EXPECT_EQ(opened.call("hello", 0, OFFLOAD_IDEMPOTENT), OFFLOAD_OK) << opened.error();
  EXPECT_EQ(opened.text(), "olleh");
}

TEST(ClientLibrary, OtherRequestsThatWereSentAreLostButTheClientReconnects) {
  const FakeServer server({[](Peer& peer) { peer.take({"hello"}); },
                           [](Peer& peer) {
                             answer(peer);
                             wait_for_end(peer);
                           }});
  Opened opened(server.port(), with(&O::reconnect_timeout, 20000));
  EXPECT_EQ(opened.call("hello"), OFFLOAD_LOST);
  EXPECT_EQ(opened.call("hello"), OFFLOAD_OK) << opened.error();
}

TEST(ClientLibrary, ALostServerIsGivenUpInTime) {
  std::optional<FakeServer> server;
  server.emplace(std::vector<FakeServer::Script>{[](Peer& peer) { peer.take({"hello"}); }});
  Opened opened(server->port(), with(&O::reconnect_timeout, 100, &O::timeout, 20000));
  EXPECT_EQ(opened.call("hello"), OFFLOAD_LOST);
  server.reset();
  EXPECT_EQ(opened.call("hello"), OFFLOAD_CONNECT_FAILED);
  EXPECT_TRUE(opened.error().starts_with("cannot reconnect in time: ")) << opened.error();
}

TEST(ClientLibrary, ASilentServerIsTriedUntilTheRequestsTimeIsOver) {
  const FakeServer server({[](Peer& peer) { peer.take({"hello"}); }});
  Opened opened(server.port(), with(&O::reconnect_timeout, 100));
  // It listens, so the client connects again, but it accepts no second connection.
  EXPECT_EQ(opened.call("hello", 300, OFFLOAD_IDEMPOTENT), OFFLOAD_TIMED_OUT);
}

TEST(ClientLibrary, TheTimeToReconnectBeginsAnewAfterARefusal) {
  const FakeServer server({[](Peer& peer) { peer.take({"hello"}); },
                           [](Peer& peer) {
                             peer.take({"hello"});
                             peer.send(error_frame(6, "none"));
                             peer.take({"hello"});
                           },
                           [](Peer& peer) {
                             answer(peer);
                             wait_for_end(peer);
                           }});
  Opened opened(server.port(), with(&O::reconnect_timeout, 500));
  EXPECT_EQ(opened.call("hello", 0, OFFLOAD_IDEMPOTENT), OFFLOAD_WORKER_UNAVAILABLE);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // longer than that time
  EXPECT_EQ(opened.call("hello", 0, OFFLOAD_IDEMPOTENT), OFFLOAD_OK) << opened.error();
}

TEST(ClientLibrary, NobodyListens) {
  core::Fd listener = net::listen_tcp(net::resolve("127.0.0.1", 0).at(0), 1);
  const std::uint16_t port = net::local_address(listener.get()).port();
  listener.reset();
  Opened opened(port);
  EXPECT_EQ(opened.status, OFFLOAD_CONNECT_FAILED);
  EXPECT_NE(opened.error().find("refused"), std::string_view::npos) << opened.error();
  EXPECT_EQ(opened.call("hello"), OFFLOAD_LOST);
  EXPECT_EQ(opened.wait(), OFFLOAD_IDLE);
}

TEST(ClientLibrary, AnUnknownName) {
  Opened opened(1, with(&O::host, "no-such-host.invalid"));
  EXPECT_EQ(opened.status, OFFLOAD_CONNECT_FAILED);
  EXPECT_NE(opened.error().find("no-such-host.invalid"), std::string_view::npos) << opened.error();
  EXPECT_EQ(offload_client_fd(opened.client), -1);
}

// The backlog of a listener is full, so connecting takes as long as it may.
TEST(ClientLibrary, ConnectingIsBounded) {
  const core::Fd listener = net::listen_tcp(net::resolve("127.0.0.1", 0).at(0), 0);
  const std::uint16_t port = net::local_address(listener.get()).port();
  const Opened first(port), second(port, with(&O::connect_timeout, 100));
  const auto begin = std::chrono::steady_clock::now();
  const Opened third(port, with(&O::connect_timeout, 100));
  EXPECT_EQ(third.status, OFFLOAD_CONNECT_FAILED);
  EXPECT_NE(third.error().find("timed out"), std::string_view::npos) << third.error();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, support::kBound);
}

TEST(ClientLibrary, WrongOptionsAndArguments) {
  const auto error = [](offload_client_options options) {
    const Opened opened(1, options);
    EXPECT_EQ(opened.status, OFFLOAD_INVALID);
    return std::string(opened.error());
  };
  EXPECT_EQ(error(with(&O::host, "")), "host is missing");
  EXPECT_EQ(error(with(&O::use_tls, 2)), "use_tls is neither 0 nor 1");
  EXPECT_EQ(error(with(&O::tls_ca, "x")), "options of TLS need use_tls");
  EXPECT_EQ(error(with(&O::tls_crl, "x")), "options of TLS need use_tls");
  EXPECT_EQ(error(with(&O::use_tls, 1, &O::tls_key, "x")),
            "tls_certificate and tls_key need each other");
  EXPECT_NE(error(with(&O::use_tls, 1, &O::tls_ca, "/none")).find("/none"), std::string::npos);
  EXPECT_EQ(offload_client_open(nullptr, nullptr), OFFLOAD_INVALID);
  EXPECT_EQ(offload_client_submit(nullptr, nullptr), OFFLOAD_INVALID);
  EXPECT_STREQ(offload_client_error(nullptr), "no memory");
  offload_client_close(nullptr);
}

TEST(ClientLibrary, RevocationListsThatAreNotWhatTheyShouldBe) {
  const support::Authority ours("ours");
  const std::string ca = ours.ca_file();
  const auto error = [&](const std::string& list) {
    const Opened opened(1, with(&O::use_tls, 1, &O::tls_ca, ca.c_str(), &O::tls_crl, list.c_str()));
    EXPECT_EQ(opened.status, OFFLOAD_INVALID);
    return std::string(opened.error());
  };
  const std::string action = "cannot use the revocation lists in ";
  EXPECT_TRUE(error("/none").starts_with(action + "/none: ")) << error("/none");
  EXPECT_TRUE(error(ca).starts_with(action + ca + ": it has no list in PEM")) << error(ca);
  const std::string list = ours.revoke({}, -60);
  EXPECT_TRUE(error(list).starts_with("the revocation list of CN=ours in " + list + " expired at "))
      << error(list);
}

// The struct of a program of an earlier version is shorter; what follows it in memory is not read.
TEST(ClientLibrary, OptionsOfAnEarlierVersion) {
  O options = with(&O::host, "127.0.0.1", &O::tls_crl, "not an option yet");
  options.port = 1;
  options.struct_size = offsetof(O, tls_crl);
  offload_client* client = nullptr;
  EXPECT_EQ(offload_client_open(&options, &client), OFFLOAD_CONNECT_FAILED);
  EXPECT_NE(std::string_view(offload_client_error(client)).find("127.0.0.1"),
            std::string_view::npos)
      << offload_client_error(client);
  offload_client_close(client);
}

// A program of a later version may have more options, if it does not use them.
TEST(ClientLibrary, OptionsOfOtherVersions) {
  struct Later {
    offload_client_options options;
    long added;
  } later{};
  later.options.struct_size = sizeof later;
  later.options.host = "";
  offload_client* client = nullptr;
  EXPECT_EQ(offload_client_open(&later.options, &client), OFFLOAD_INVALID);
  EXPECT_STREQ(offload_client_error(client), "host is missing");
  offload_client_close(client);
  later.added = 1;
  EXPECT_EQ(offload_client_open(&later.options, &client), OFFLOAD_INVALID);
  EXPECT_STREQ(offload_client_error(client), "invalid struct_size, or options of a later version");
  offload_client_close(client);
}

TEST(ClientLibrary, AForkedProcessDoesNotUseTheConnection) {
  const FakeServer server({[](Peer& peer) {
    answer(peer);
    wait_for_end(peer);
  }});
  Opened opened(server.port());
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = opened.call("child") == OFFLOAD_NOT_OWNER;
    offload_client_close(opened.client);
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(opened.call("hello"), OFFLOAD_OK);
}

TEST(ClientLibrary, AnotherThreadInTheMiddleOfACall) {
  std::atomic<bool> may_answer = false;
  const FakeServer server({[&](Peer& peer) {
    peer.take({"hello"});
    EXPECT_TRUE(support::eventually([&] { return may_answer.load(); }));
    peer.send(frame("olleh"));
    wait_for_end(peer);
  }});
  Opened opened(server.port());
  ASSERT_EQ(opened.submit("hello"), OFFLOAD_OK);
  std::thread waiting([&] {
    // It is refused as long as it comes in the middle of a call below.
    EXPECT_TRUE(support::eventually([&] { return opened.wait() == OFFLOAD_OK; }));
  });
  offload_client_response response;
  EXPECT_TRUE(support::eventually(
      [&] { return offload_client_wait(opened.client, 0, &response) == OFFLOAD_NOT_OWNER; }));
  may_answer = true;
  waiting.join();
  EXPECT_EQ(opened.text(), "olleh");
}

TEST(ClientLibrary, NamesOfStatuses) {
  EXPECT_STREQ(offload_client_status_name(OFFLOAD_OK), "ok");
  EXPECT_STREQ(offload_client_status_name(OFFLOAD_WORKER_UNAVAILABLE), "worker_unavailable");
  EXPECT_STREQ(offload_client_status_name(OFFLOAD_IDLE), "idle");
  EXPECT_STREQ(offload_client_status_name(77), "unknown");
  EXPECT_STREQ(offload_client_status_name(-99), "unknown");
}

}  // namespace
}  // namespace offload::clients
