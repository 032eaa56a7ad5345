#include "apps/server/acceptor.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>

#include "net/socket.hpp"
#include "net/source/source.hpp"
#include "tests/server/fixtures/client_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::server {
namespace {

constexpr std::uint32_t kDepth = 2;
constexpr std::uint32_t kLongest = 64;
constexpr int kBacklog = 64;

using Counts = std::vector<std::uint64_t>;

/// I/O threads without a worker, and an acceptor; the test acts as its control thread.
class AcceptorTest : public testing::Test {
 protected:
  /// Each port has equally many threads, in the order of the ports.
  void open(std::size_t threads, int first_reserved_fd = 1 << 20, const ClientLimits& limits = {},
            bool tls = false, std::vector<net::AddressRange> proxies = {},
            std::size_t port_count = 1) {
    const auto retries = std::make_shared<RetryState>(threads);
    for (std::uint32_t i = 0; i < threads; ++i) {
      IoThread::Config config{
          i,  -1, {kLongest, kernels::response_length_of("reverse")}, core::seconds(60), {}, {},
          {}, {}};
      config.retries = retries;
      threads_.push_back(std::make_unique<IoThread>(
          config, std::shared_ptr<comch::WorkerChannel>(new comch::WorkerChannel{
                      1, channel::Wakeup::none, {i, kDepth, kLongest, -1}})));
      threads_.back()->start();
    }
    std::vector<Acceptor::Port> ports;
    const std::span<const std::unique_ptr<IoThread>> all(threads_);
    for (std::size_t i = 0; i < port_count; ++i) {
      core::Fd listener = net::listen_tcp(net::resolve("127.0.0.1", 0).front(), kBacklog);
      addresses_.push_back(net::local_address(listener.get()));
      const std::size_t share = threads / port_count;
      ports.push_back({std::move(listener), all.subspan(i * share, share)});
    }
    acceptor_.emplace(engine_, Acceptor::Config{std::move(ports), first_reserved_fd, limits, tls,
                                                waiting_, std::move(proxies), header_time_});
  }

  /// Returns the bytes that a client beyond --max-clients receives.
  std::string sent_to_one_too_many(bool tls) {
    ClientLimits limits;
    limits.connections = 1;
    open(1, 1 << 20, limits, tls);
    const core::Fd first = connect();
    EXPECT_TRUE(turn_until([&] { return counts() == Counts{1}; }));
    EXPECT_TRUE(acceptor_->has_room());
    const core::Fd second = connect();
    std::string sent;
    EXPECT_TRUE(turn_until([&] {
      std::array<char, 256> bytes{};
      const auto count = ::recv(second.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count > 0) sent.append(bytes.data(), static_cast<std::size_t>(count));
      return count == 0 || (count < 0 && errno == ECONNRESET);
    }));
    EXPECT_FALSE(acceptor_->has_room()) << "for some seconds";
    return sent;
  }

  core::Fd connect(std::size_t port = 0) { return net::start_connect(addresses_[port]); }

  /// Turns the control thread until `condition` holds; returns whether it came to hold.
  template <class Condition>
  bool turn_until(Condition condition) {
    return support::eventually([&] {
      engine_.run_once(core::TimePoint{});
      acceptor_->tick(core::Clock::now());
      return condition();
    });
  }

  /// Returns the number of clients of each thread.
  [[nodiscard]] std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> all;
    for (const auto& thread : threads_) all.push_back(thread->client_count());
    return all;
  }

  static bool has_ended_after_bytes(const core::Fd& client) {
    std::array<char, 256> bytes{};
    return ::recv(client.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) == 0;
  }
  static bool has_ended(const core::Fd& client) {
    char byte = 0;
    const auto count = ::recv(client.get(), &byte, 1, MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno == ECONNRESET);
  }

  progress::Engine engine_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::shared_ptr<WaitingAddresses> waiting_ = std::make_shared<WaitingAddresses>();
  core::Duration header_time_ = ProxiedClients::kTime;
  std::vector<net::SocketAddress> addresses_;  ///< of the ports
  std::optional<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, SpreadsClientsEvenly) {
  open(3);
  std::vector<core::Fd> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(connect());
  const support::LogCapture log;
  EXPECT_TRUE(turn_until([&] { return counts() == Counts{3, 3, 2}; }));
  EXPECT_TRUE(log.has("debug: client 1, 127.0.0.1")) << log.text();
  EXPECT_TRUE(log.has("debug: client 8, 127.0.0.1")) << log.text();
}

// Otherwise clients that come and go would all meet at the first thread.
TEST_F(AcceptorTest, OfThreadsWithAsFewClientsEachHasItsTurn) {
  open(3);
  for (std::size_t i = 0; i < 6; ++i) {
    core::Fd client = connect();
    ASSERT_TRUE(turn_until([&] { return counts()[i % 3] == 1; })) << i;
    client.reset();
    ASSERT_TRUE(turn_until([&] { return counts() == Counts{0, 0, 0}; }));
  }
}

TEST_F(AcceptorTest, EachThreadIsLookedAt) {
  open(3);
  std::vector<core::Fd> clients;
  for (std::size_t i = 0; i < 7; ++i) {
    clients.push_back(connect());
    ASSERT_TRUE(turn_until([&] { return counts()[i % 3] == i / 3 + 1; }));
  }
  clients[2].reset();
  ASSERT_TRUE(turn_until([&] { return counts() == Counts{3, 2, 1}; }));
  clients[2] = connect();
  EXPECT_TRUE(turn_until([&] { return counts() == Counts{3, 2, 2}; }));
}

TEST_F(AcceptorTest, OneAddressHasThreeQuartersOfThePlaces) {
  ClientLimits limits;
  limits.connections = 8;
  open(1, 1 << 20, limits);
  const std::uint64_t limited = net::limited_sources.count(net::Door::clients);
  std::vector<core::Fd> clients;
  for (int i = 0; i < 7; ++i) clients.push_back(connect());
  ASSERT_TRUE(turn_until([&] { return has_ended_after_bytes(clients[6]); }));
  EXPECT_EQ(counts(), Counts{6});
  EXPECT_EQ(net::limited_sources.count(net::Door::clients), limited + 1);
  EXPECT_TRUE(acceptor_->has_room()) << "for other addresses";
}

// The control thread has its other work in between.
TEST_F(AcceptorTest, AFloodIsAcceptedInParts) {
  open(1);
  std::vector<core::Fd> clients;
  for (int i = 0; i < kBacklog + 1; ++i) clients.push_back(connect());
  for (const core::Fd& client : clients) {
    ASSERT_TRUE(support::eventually([&] { return net::connect_result(client.get()) == 0; }));
  }
  engine_.run_once(core::TimePoint{});
  EXPECT_EQ(counts(), Counts{64});
  EXPECT_TRUE(turn_until([&] { return counts() == Counts{kBacklog + 1}; }));
}

TEST_F(AcceptorTest, FillsUpWhereClientsHaveGone) {
  open(3);
  std::vector<core::Fd> clients;
  for (std::size_t i = 0; i < 9; ++i) {
    clients.push_back(connect());
    ASSERT_TRUE(turn_until([&] { return counts()[i % 3] == i / 3 + 1; }));  // in turn
  }
  clients[1].reset();
  clients[4].reset();
  ASSERT_TRUE(turn_until([&] { return counts() == Counts{3, 1, 3}; }));
  clients[1] = connect();
  clients[4] = connect();
  EXPECT_TRUE(turn_until([&] { return counts() == Counts{3, 3, 3}; }));
}

TEST_F(AcceptorTest, TurnsAwayThoseBeyondTheDescriptorsForClients) {
  open(2, /*first_reserved_fd=*/0);
  const support::LogCapture log;
  const core::Fd client = connect();
  EXPECT_TRUE(turn_until([&] { return has_ended(client); }));
  EXPECT_EQ(counts(), (Counts{0, 0}));
  EXPECT_TRUE(log.has("client 1, 127.0.0.1")) << log.text();
  EXPECT_TRUE(log.has("is rejected: the limit of open files is reached")) << log.text();
  EXPECT_FALSE(acceptor_->has_room());
}

TEST_F(AcceptorTest, TurnsAwayAnAddressThatWaits) {
  open(1);
  sockaddr_storage loopback{};
  loopback.ss_family = AF_INET;
  reinterpret_cast<sockaddr_in&>(loopback).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  waiting_->add(net::PeerAddress(loopback), core::Clock::now());
  const support::LogCapture log;
  const core::Fd client = connect();
  test::Received received;
  EXPECT_TRUE(turn_until([&] { return received.read(client), received.ended; }));
  EXPECT_EQ(received.take(), test::error(protocol::Refusal::worker_failed));
  EXPECT_EQ(counts(), Counts{0});
  EXPECT_TRUE(log.has("workers were lost with a request from this address")) << log.text();
}

TEST_F(AcceptorTest, TellsOneTooManyWhy) {
  EXPECT_NE(sent_to_one_too_many(/*tls=*/false).find("clients"), std::string::npos);
}

// Before its handshake a TLS client could not read that, and would report bytes that are not TLS.
TEST_F(AcceptorTest, TellsNothingWhereClientsSpeakTls) {
  EXPECT_EQ(sent_to_one_too_many(/*tls=*/true), "");
}

/// Sends a header that names 192.0.2.`last` as the client.
void name_client(const core::Fd& proxy, int last) {
  std::string header("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\2\1\xc6\x33\x64\2\x12\x67\1\xbb",
                     28);
  header[19] = static_cast<char>(last);
  ASSERT_TRUE(support::eventually([&] { return net::connect_result(proxy.get()) == 0; }));
  test::send_all(proxy, std::as_bytes(std::span(header)));
}

TEST_F(AcceptorTest, CountsTheClientsThatAProxyNames) {
  ClientLimits limits;
  limits.per_address = 1;
  open(1, 1 << 20, limits, false, {*net::AddressRange::parse("127.0.0.1")});
  const core::Fd one = connect();
  const core::Fd again = connect();
  const core::Fd other = connect();
  name_client(one, 1);
  ASSERT_TRUE(turn_until([&] { return counts() == Counts{1}; }));
  name_client(again, 1);
  test::Received received;
  EXPECT_TRUE(turn_until([&] { return received.read(again), received.ended; }));
  EXPECT_EQ(received.take(), test::error(protocol::Refusal::too_many_of_address));
  name_client(other, 2);
  EXPECT_TRUE(turn_until([&] { return counts() == Counts{2}; }));
}

TEST_F(AcceptorTest, AClientGetsAThreadOfItsPort) {
  open(3, 1 << 20, {}, false, {}, 3);
  std::vector<core::Fd> clients;
  for (const std::size_t port : {2U, 1U, 2U, 0U}) clients.push_back(connect(port));
  EXPECT_TRUE(turn_until([&] { return counts() == Counts{1, 1, 2}; }));
}

TEST_F(AcceptorTest, AClientOfAProxyGetsAThreadOfItsPort) {
  open(3, 1 << 20, {}, false, {*net::AddressRange::parse("127.0.0.1")}, 3);
  std::vector<core::Fd> clients;
  for (const std::size_t port : {2U, 1U, 2U, 0U}) {
    clients.push_back(connect(port));
    name_client(clients.back(), 1);
  }
  EXPECT_TRUE(turn_until([&] { return counts() == Counts{1, 1, 2}; }));
}

TEST_F(AcceptorTest, AProxyThatSaysNothingIsNoClient) {
  open(1, 1 << 20, {}, false, {*net::AddressRange::parse("127.0.0.1")});
  const core::Fd silent = connect();
  ASSERT_TRUE(turn_until([&] { return acceptor_->next_tick() != core::TimePoint::max(); }));
  EXPECT_EQ(counts(), Counts{0});
  EXPECT_FALSE(has_ended(silent));
}

TEST_F(AcceptorTest, AProxyThatSaysNothingIsClosedInTime) {
  header_time_ = std::chrono::milliseconds(20);
  open(1, 1 << 20, {}, false, {*net::AddressRange::parse("127.0.0.1")});
  const core::Fd silent = connect();
  EXPECT_TRUE(turn_until([&] { return has_ended(silent); }));
  EXPECT_EQ(counts(), Counts{0});
}

TEST_F(AcceptorTest, WaitsWhileThereAreNoDescriptors) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer takes descriptors itself, to look at the type of an object";
#endif
  open(1);
  const core::Fd client = connect();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  const support::LogCapture log;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool paused = support::eventually([&] {
    return engine_.run_once(core::TimePoint{}), acceptor_->next_tick() != core::TimePoint::max();
  });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(paused);
  EXPECT_TRUE(log.has("no client is accepted for now: ")) << log.text();
  EXPECT_FALSE(acceptor_->has_room());
  EXPECT_EQ(counts(), Counts{0});
  EXPECT_FALSE(has_ended(client));
  EXPECT_TRUE(turn_until([&] { return counts() == Counts{1}; }));
  EXPECT_EQ(acceptor_->next_tick(), core::TimePoint::max());
  EXPECT_TRUE(acceptor_->has_room());
}

// A client at the last port does not have the thread try again and again.
TEST_F(AcceptorTest, EachPortWaitsWhileThereAreNoDescriptors) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer takes descriptors itself, to look at the type of an object";
#endif
  open(2, 1 << 20, {}, false, {}, 2);
  const core::Fd client = connect(1);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool paused = support::eventually([&] {
    return engine_.run_once(core::TimePoint{}), acceptor_->next_tick() != core::TimePoint::max();
  });
  const bool worked = engine_.run_once(core::Clock::now() + std::chrono::milliseconds(20));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(paused);
  EXPECT_FALSE(worked);
  EXPECT_TRUE(turn_until([&] { return counts() == Counts{0, 1}; }));
}

TEST_F(AcceptorTest, WhoWasAcceptedIsDrainedThoughNotTakenYet) {
  open(2);
  std::vector<core::Fd> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(connect());
  const auto all_accepted = [&] { return counts() == Counts{10, 10}; };
  ASSERT_TRUE(turn_until(all_accepted));
  acceptor_.reset();
  for (const auto& thread : threads_) thread->drain();
  EXPECT_TRUE(
      support::eventually([&] { return std::all_of(clients.begin(), clients.end(), has_ended); }));
  clients.clear();
  EXPECT_TRUE(support::eventually([&] {
    return std::all_of(threads_.begin(), threads_.end(),
                       [](const auto& thread) { return thread->drained(); });
  }));
  EXPECT_EQ(counts(), (Counts{0, 0}));
}

TEST_F(AcceptorTest, NobodyIsLetInAfterItsEnd) {
  open(1);
  acceptor_.reset();
  const core::Fd client = connect();
  EXPECT_TRUE(support::eventually([&] { return net::connect_result(client.get()) != 0; }));
}

}  // namespace
}  // namespace offload::server
