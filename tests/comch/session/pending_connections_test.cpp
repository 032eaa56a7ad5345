#include "comch/session/pending_connections.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>

#include "comch/session/handshake.hpp"
#include "comch/transport/tcp/control.hpp"
#include "core/error.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::comch {
namespace {

using core::Clock;
using protocol::MessageId;
using protocol::Refusal;

constexpr std::size_t kMost = 64;

/// Over a network; its peers have the key, or have not.
class PendingOverTcp : public testing::Test {
 protected:
  static Address address() {
    Address address = Address::parse("tcp:127.0.0.1:0");
    address.key = Key(32, std::byte{7});
    return address;
  }
  template <class Condition>
  bool run_until(Condition condition) {
    return support::eventually(
        condition, [this] { engine_.run_once(Clock::now() + std::chrono::milliseconds(1)); });
  }
  /// A connection that has proved that it has the key.
  std::unique_ptr<ControlConnection> connect_proven() {
    auto proven =
        std::async(std::launch::async, [this] { return connect_as_worker(pending_.address()); });
    EXPECT_TRUE(run_until(
        [&] { return proven.wait_for(core::Duration::zero()) == std::future_status::ready; }));
    return proven.get();
  }
  std::unique_ptr<ControlConnection> connect_silent() {
    auto connection = connect_tcp(pending_.address());
    std::optional<ControlMessage> message;
    EXPECT_TRUE(run_until([&] { return (message = connection->receive()).has_value(); }));
    EXPECT_EQ(message->id, MessageId::challenge);
    return connection;
  }
  bool is_closed(ControlConnection& connection) {
    return run_until([&] {
      try {
        connection.receive();
        return false;
      } catch (const core::Error& error) {
        return error.code() == core::ErrorCode::connection_reset;
      }
    });
  }

  support::LogCapture log_;
  progress::Engine engine_;
  std::optional<MessageId> first_;
  std::unique_ptr<ControlConnection> connection_;
  PendingConnections pending_{engine_, address(), [this](auto connection, const auto& message) {
                                first_ = message.id;
                                connection_ = std::move(connection);
                              }};
};

TEST_F(PendingOverTcp, TheFirstMessageAfterTheProofsIsHandedOn) {
  const auto worker = connect_proven();
  EXPECT_FALSE(first_);
  worker->send(MessageId::hello, {});
  ASSERT_TRUE(run_until([&] { return first_.has_value(); }));
  EXPECT_EQ(first_, MessageId::hello);
  worker->send(MessageId::keep_alive, {});
  EXPECT_EQ(connection_->await().id, MessageId::keep_alive) << "the connection is the handler's";
}

TEST_F(PendingOverTcp, WithoutAProofNothingIsHandedOn) {
  const auto peer = connect_silent();
  peer->send(MessageId::hello, {});
  std::optional<ControlMessage> answer;
  ASSERT_TRUE(run_until([&] { return (answer = peer->receive()).has_value(); }));
  ASSERT_EQ(answer->id, MessageId::error);
  EXPECT_EQ(protocol::parse_error(answer->payload).code, Refusal::bad_key);
  EXPECT_TRUE(is_closed(*peer));
  EXPECT_FALSE(first_);
}

TEST_F(PendingOverTcp, WhatIsNoFrameIsRefused) {
  const auto peer = connect_silent();
  ASSERT_EQ(::send(peer->fd(), "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  std::optional<ControlMessage> answer;
  ASSERT_TRUE(run_until([&] { return (answer = peer->receive()).has_value(); }));
  EXPECT_EQ(protocol::parse_error(answer->payload).code, Refusal::bad_hello);
  EXPECT_TRUE(is_closed(*peer));
}

TEST_F(PendingOverTcp, TheOldestWithoutAProofMakesRoom) {
  const auto worker = connect_proven();
  std::vector<std::unique_ptr<ControlConnection>> silent;
  while (silent.size() < kMost) silent.push_back(connect_silent());
  EXPECT_TRUE(is_closed(*silent.front()));
  EXPECT_FALSE(silent[1]->receive());
  EXPECT_TRUE(log_.has("makes room for another")) << log_.text();
  worker->send(MessageId::hello, {});
  EXPECT_TRUE(run_until([&] { return first_.has_value(); })) << "the one with a proof stays";
}

TEST_F(PendingOverTcp, ASilentOneIsDroppedAfterFiveSeconds) {
  const auto peer = connect_silent();
  pending_.tick(Clock::now() + std::chrono::seconds(4));
  EXPECT_FALSE(peer->receive());
  pending_.tick(Clock::now() + std::chrono::seconds(6));
  EXPECT_TRUE(is_closed(*peer));
}

}  // namespace
}  // namespace offload::comch
