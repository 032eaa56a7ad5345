#include "comch/session/pending_connections.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comch/transport/transport.hpp"
#include "core/error.hpp"
#include "net/socket.hpp"
#include "tests/comch/keys.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::Clock;
using protocol::MessageId;

/// Connections over a network; the peers have the key, or do not have it.
class PendingConnectionsTest : public testing::Test {
 protected:
  template <class Condition>
  bool run_until(Condition condition) {
    return support::eventually(
        condition, [this] { engine_.run_once(Clock::now() + std::chrono::milliseconds(1)); });
  }
  /// Returns a connection that has proved that it has the key; null if it was not accepted.
  std::unique_ptr<ControlConnection> connect_proven(std::shared_ptr<Keyring> keys) {
    Address address = pending_->address();
    address.keys = std::move(keys);
    auto proven = std::async(std::launch::async, [address]() -> std::unique_ptr<ControlConnection> {
      try {
        return connect_to(address);
      } catch (const core::Error&) {
        return nullptr;
      }
    });
    EXPECT_TRUE(run_until(
        [&] { return proven.wait_for(core::Duration::zero()) == std::future_status::ready; }));
    return proven.get();
  }
  std::unique_ptr<ControlConnection> connect_proven() { return connect_proven(keys_); }
  /// Returns a stranger's socket.
  core::Fd connect_silent() {
    core::Fd fd = net::start_connect(net::resolve("127.0.0.1", pending_->address().port)[0]);
    engine_.run_once(Clock::now() + std::chrono::milliseconds(1));
    return fd;
  }
  bool is_closed(const core::Fd& fd) {
    return run_until([&] {
      std::array<char, 64> bytes;
      const auto received = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      return received == 0 || (received < 0 && errno != EAGAIN);
    });
  }
  void send(const core::Fd& fd, std::string_view text) {
    ASSERT_TRUE(run_until([&] {
      return ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(text.size());
    }));
  }
  /// Returns the first bytes of a worker that has the key.
  std::string first_bytes_of_a_worker() {
    std::string first(2000, '\0');
    Address address = pending_->address();
    const core::Fd listener = net::listen_tcp(net::resolve("127.0.0.1", 0)[0], 1);
    address.port = net::local_address(listener.get()).port();
    auto worker = std::async(std::launch::async, [&] {
      return support::thrown_by([&] { static_cast<void>(connect_to(address)); }).code();
    });
    core::Fd heard;
    EXPECT_TRUE(run_until([&] {
      heard = core::Fd(::accept(listener.get(), nullptr, nullptr));
      return heard.valid();
    }));
    ssize_t size = 0;
    EXPECT_TRUE(run_until([&] {
      size = ::recv(heard.get(), first.data(), first.size(), MSG_DONTWAIT);
      return size > 0;
    }));
    first.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    heard = {};
    EXPECT_EQ(worker.get(), core::ErrorCode::connection_aborted);
    return first;
  }
  void listen(Address address) {
    pending_.emplace(engine_, address, [this](auto connection, const auto& message) {
      first_ = message.id;
      connection_ = std::move(connection);
    });
  }
  void SetUp() override { listen(test::address_with("tcp:127.0.0.1:0", keys_)); }

  support::LogCapture log_;
  progress::Engine engine_;
  std::shared_ptr<Keyring> keys_ = test::keyring_of(7);
  std::optional<MessageId> first_;
  std::unique_ptr<ControlConnection> connection_;
  std::optional<PendingConnections> pending_;
};

using PendingOverTcp = PendingConnectionsTest;

TEST_F(PendingOverTcp, TheFirstMessageAfterTheProofsIsHandedOn) {
  const auto worker = connect_proven();
  EXPECT_FALSE(first_);
  worker->send(MessageId::hello, {});
  ASSERT_TRUE(run_until([&] { return first_.has_value(); }));
  EXPECT_EQ(first_, MessageId::hello);
  worker->send(MessageId::keep_alive, {});
  EXPECT_EQ(connection_->await().id, MessageId::keep_alive) << "the connection is the handler's";
}

TEST_F(PendingOverTcp, WhoIsNoHolderOfTheKeyIsClosedAtItsFirstBytes) {
  const auto peer = connect_silent();
  send(peer, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(is_closed(peer));
  EXPECT_FALSE(first_);
  EXPECT_TRUE(log_.has("a control connection of 127.0.0.1:")) << log_.text();
  EXPECT_TRUE(log_.has("knows no key of this server")) << log_.text();
}

// The last of them waits neither for a tick() nor for a later connection.
TEST_F(PendingOverTcp, ManyAtOnceAreAllTaken) {
  const auto address = net::resolve("127.0.0.1", pending_->address().port)[0];
  std::vector<core::Fd> peers;
  while (peers.size() < PendingConnections::kMost) peers.push_back(net::start_connect(address));
  for (const core::Fd& peer : peers) send(peer, "GET / HTTP/1.1\r\n\r\n");
  for (const core::Fd& peer : peers) ASSERT_TRUE(is_closed(peer));
}

// Those that are attached get their turn in between.
TEST_F(PendingOverTcp, ATurnTakesABoundedNumber) {
  Address address = Address::parse("tcp:127.0.0.1:0");
  address.insecure = true;
  int heard = 0;
  pending_.emplace(engine_, address, [&](auto, const auto&) { ++heard; });
  std::vector<std::unique_ptr<ControlConnection>> peers;
  while (peers.size() < PendingConnections::kMost) {
    peers.push_back(connect_to(pending_->address()));
    peers.back()->send(MessageId::hello, {});
  }
  engine_.run_once(Clock::now());
  EXPECT_GT(heard, 1);
  EXPECT_LT(heard, static_cast<int>(PendingConnections::kMost));
  EXPECT_TRUE(run_until([&] { return heard == static_cast<int>(PendingConnections::kMost); }));
}

// The connection comes while there is no descriptor for it, and no other comes after it.
TEST_F(PendingOverTcp, OneThatHadToWaitIsTakenInATick) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer takes descriptors itself, to look at the type of an object";
#endif
  const auto address = net::resolve("127.0.0.1", pending_->address().port)[0];
  const core::Fd peer = net::start_connect(address);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool waits = run_until([&] { return log_.has("a control connection must wait"); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_TRUE(waits) << log_.text();
  send(peer, "GET / HTTP/1.1\r\n\r\n");
  pending_->tick(engine_.run_time());
  EXPECT_TRUE(is_closed(peer));
}

TEST_F(PendingOverTcp, KeysThatWereReadAgainAreThoseOfTheNextConnection) {
  const support::TempDir dir;
  const std::string file = dir.file("key");
  const auto write = [&] {
    std::array<char, 32> bytes;
    randomize(std::as_writable_bytes(std::span(bytes)));
    std::ofstream(file, std::ios::binary).write(bytes.data(), bytes.size());
    ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  };
  write();
  const std::vector<std::string> files{file};
  keys_ = std::make_shared<Keyring>(files);
  listen(test::address_with("tcp:127.0.0.1:0", keys_));
  const auto former = std::make_shared<Keyring>(files);
  EXPECT_NE(connect_proven(former), nullptr);
  write();
  ASSERT_TRUE(keys_->reload());
  EXPECT_EQ(connect_proven(former), nullptr);
  EXPECT_NE(connect_proven(), nullptr);
}

TEST_F(PendingOverTcp, TheOldestThatSaidNothingMakesRoom) {
  const auto worker = connect_proven();
  const std::uint64_t limited = net::limited_sources.count(net::Door::control);
  std::vector<core::Fd> silent;
  while (silent.size() < PendingConnections::kMost) silent.push_back(connect_silent());
  EXPECT_TRUE(is_closed(silent.front()));
  EXPECT_EQ(net::limited_sources.count(net::Door::control), limited + 1);
  std::array<char, 1> byte;
  EXPECT_LT(::recv(silent[1].get(), byte.data(), byte.size(), MSG_DONTWAIT), 0);
  EXPECT_TRUE(log_.has("is closed to make room for another")) << log_.text();
  worker->send(MessageId::hello, {});
  EXPECT_TRUE(run_until([&] { return first_.has_value(); })) << "the one with a proof stays";
}

TEST_F(PendingOverTcp, WhoHasProvenTheKeyMakesRoomForNobody) {
  std::vector<std::unique_ptr<ControlConnection>> proven;
  while (proven.size() < PendingConnections::kMost) {
    proven.push_back(connect_proven());
    ASSERT_NE(proven.back(), nullptr);
  }
  const core::Fd silent = connect_silent();
  EXPECT_TRUE(is_closed(silent));
  proven.front()->send(MessageId::hello, {});
  EXPECT_TRUE(run_until([&] { return first_.has_value(); }));
}

// A worker in a separate network does not lose its place to others, and a peer that begins a
// handshake is not the first to be dropped, whatever else comes from its network.
TEST_F(PendingOverTcp, WhoIsProvingStaysAmongTheSilent) {
  std::vector<core::Fd> silent;
  const auto worker =
      std::async(std::launch::async, [&] { return connect_to(pending_->address()); });
  ASSERT_TRUE(run_until([&] {
    silent.push_back(connect_silent());
    return worker.wait_for(core::Duration::zero()) == std::future_status::ready;
  }));
}

TEST_F(PendingOverTcp, OneThatIsProvingStaysThoughItIsTheOldest) {
  const core::Fd proving = connect_silent();
  send(proving, first_bytes_of_a_worker());
  std::array<char, 4096> bytes;
  ASSERT_TRUE(run_until([&] {
    return ::recv(proving.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0;
  })) << "the server's part of the handshake";
  std::vector<core::Fd> silent;
  while (silent.size() < PendingConnections::kMost) silent.push_back(connect_silent());
  EXPECT_TRUE(is_closed(silent.front()));
  EXPECT_LT(::recv(proving.get(), bytes.data(), bytes.size(), MSG_DONTWAIT), 0);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(PendingOverTcp, ASourceThatProvesNothingHasFewHandshakes) {
  // A stranger that has heard them may send them at any rate.
  const std::string first = first_bytes_of_a_worker();
  const std::uint64_t limited = net::limited_sources.count(net::Door::control);
  std::vector<core::Fd> replays;
  for (int i = 0; i < 2 * static_cast<int>(net::SourceLimits::kBurst); ++i) {
    replays.push_back(connect_silent());
    send(replays.back(), first);
  }
  EXPECT_TRUE(run_until([&] { return log_.has("too many of its network prove no key"); }))
      << log_.text();
  EXPECT_GT(net::limited_sources.count(net::Door::control), limited);
  EXPECT_FALSE(first_);
}

TEST_F(PendingOverTcp, OnlyTheNetworksThatAreAllowed) {
  Address address = test::address_with("tcp:127.0.0.1:0", keys_);
  address.allowed = {*net::AddressRange::parse("10.0.0.0/8")};
  listen(address);
  EXPECT_EQ(connect_proven(), nullptr);
  EXPECT_TRUE(log_.has("is refused: --comch-allow lacks its network")) << log_.text();
  address.allowed.push_back(*net::AddressRange::parse("127.0.0.0/8"));
  listen(address);
  EXPECT_NE(connect_proven(), nullptr);
}

TEST_F(PendingOverTcp, ASilentOneIsDroppedAfterFiveSeconds) {
  const auto peer = connect_silent();
  run_until([] { return true; });
  pending_->tick(engine_.run_time() + std::chrono::seconds(4));
  std::array<char, 1> byte;
  EXPECT_LT(::recv(peer.get(), byte.data(), byte.size(), MSG_DONTWAIT), 0);
  EXPECT_EQ(errno, EAGAIN);
  pending_->tick(engine_.run_time() + std::chrono::seconds(6));
  EXPECT_TRUE(is_closed(peer));
}

TEST_F(PendingOverTcp, AnUnfinishedGreetingIsDroppedAfterFiveSecondsInEachStage) {
  const std::string first = first_bytes_of_a_worker();
  const core::Fd silent = connect_silent();
  const core::Fd begun = connect_silent();
  send(begun, first.substr(0, 1));
  const core::Fd proving = connect_silent();
  send(proving, first);
  const auto proven = connect_proven();
  std::array<char, 4096> bytes;
  ASSERT_TRUE(run_until([&] {
    return ::recv(proving.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0;
  })) << "the server's part of the handshake";
  pending_->tick(engine_.run_time() + std::chrono::seconds(4));
  for (const core::Fd* peer : {&silent, &begun, &proving}) {
    EXPECT_LT(::recv(peer->get(), bytes.data(), bytes.size(), MSG_DONTWAIT), 0);
    EXPECT_EQ(errno, EAGAIN);
  }
  EXPECT_FALSE(proven->receive());
  pending_->tick(engine_.run_time() + std::chrono::seconds(6));
  for (const core::Fd* peer : {&silent, &begun, &proving}) EXPECT_TRUE(is_closed(*peer));
  const auto end = support::thrown_by([&] { static_cast<void>(proven->await()); });
  EXPECT_EQ(end.code(), core::ErrorCode::connection_reset);
}

}  // namespace
}  // namespace offload::comch
