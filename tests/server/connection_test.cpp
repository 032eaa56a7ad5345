#include "apps/server/connection.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "tests/support/bytes.hpp"
#include "tests/support/eventually.hpp"

namespace offload::server {
namespace {

using protocol::Refusal;
using State = Connection::State;
using support::Bytes;
using support::bytes_of;
using support::copy_of;

constexpr std::size_t kBufferSize = 4096;

/// A connection, and its client played by the test.
class ConnectionTest : public testing::Test, ConnectionOwner {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    client_ = core::Fd(fds[0]);
    connection_ = std::make_unique<Connection>(core::Fd(fds[1]), engine_, cache_,
                                               static_cast<ConnectionOwner&>(*this));
    turn();  // that it is writable is the first event of all
    receive_all();
  }

  void on_ready(Connection& connection) override {
    EXPECT_EQ(&connection, connection_.get());
    ++ready_;
  }

  /// Takes the events that there are.
  void turn() { engine_.run_once(core::TimePoint{}); }

  void receive_all() {
    turn();
    while (connection_->wants_to_read()) connection_->receive();
  }

  void client_sends(std::span<const std::byte> bytes) {
    ASSERT_EQ(::send(client_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  /// What there is to read for the client now.
  Bytes client_reads() {
    Bytes all;
    std::byte chunk[65536];
    for (;;) {
      const ssize_t count = ::recv(client_.get(), chunk, sizeof chunk, 0);
      if (count <= 0) {
        client_at_end_ = count == 0;
        return all;
      }
      all.insert(all.end(), chunk, chunk + count);
    }
  }

  /// Answers so, as the owner of a connection does.
  void respond(std::string_view text) {
    std::memcpy(gather_.room(), text.data(), text.size());
    gather_.commit(connection_->chain(), text.size());
    connection_->send(gather_);
    gather_.reset();
  }

  /// Sends until the client's socket takes no more; returns all that was sent. What the client
  /// sent before and the connection has not read shows when that is.
  Bytes respond_until_stuck() {
    client_sends(bytes_of("?"));
    turn();
    EXPECT_TRUE(connection_->wants_to_read());
    Bytes sent;
    auto payload = support::random_bytes(60'000, 1);
    while (connection_->wants_to_read() && sent.size() < (std::size_t{64} << 20)) {
      gather_.refer(connection_->chain(), payload);
      connection_->send(gather_);
      gather_.reset();
      sent.insert(sent.end(), payload.begin(), payload.end());
    }
    EXPECT_FALSE(connection_->wants_to_read());
    return sent;
  }

  /// All that arrives at the client until `size` bytes have, or a bound passes.
  Bytes client_reads_until(std::size_t size) {
    Bytes all;
    support::eventually([&] { return all.size() >= size; },
                        [&] {
                          const auto more = client_reads();
                          all.insert(all.end(), more.begin(), more.end());
                          turn();
                        });
    return all;
  }

  progress::Engine engine_;
  memory::BlockCache cache_{kBufferSize, 1};
  net::OutputBatch gather_{8, 512};
  core::Fd client_;
  std::unique_ptr<Connection> connection_;
  int ready_ = 0;
  bool client_at_end_ = false;
};

TEST_F(ConnectionTest, ReadsWhatCame) {
  EXPECT_EQ(connection_->state(), State::open);
  EXPECT_FALSE(connection_->wants_to_read());
  client_sends(bytes_of("hello"));
  turn();
  EXPECT_GT(ready_, 0);
  ASSERT_TRUE(connection_->wants_to_read());
  connection_->receive();
  EXPECT_EQ(copy_of(connection_->input().bytes()), copy_of(bytes_of("hello")));
  EXPECT_FALSE(connection_->wants_to_read());
  client_sends(bytes_of(" world"));
  receive_all();
  EXPECT_EQ(copy_of(connection_->input().bytes()), copy_of(bytes_of("hello world")));
}

// Edge-triggered: what one read left behind makes no new event.
TEST_F(ConnectionTest, AfterAReadThatFilledItsRoomThereMayBeMore) {
  const auto message = support::random_bytes(kBufferSize + 10, 1);
  client_sends(message);
  turn();
  connection_->receive();
  ASSERT_EQ(connection_->input().bytes().size(), kBufferSize);
  ASSERT_TRUE(connection_->wants_to_read());
  connection_->input().consume(kBufferSize);
  connection_->receive();
  EXPECT_EQ(connection_->input().bytes().size(), 10U);
  EXPECT_FALSE(connection_->wants_to_read());
}

TEST_F(ConnectionTest, SendsABatchInOrder) {
  std::memcpy(gather_.room(), "one ", 4);
  gather_.commit(connection_->chain(), 4);
  auto elsewhere = copy_of(bytes_of("two "));
  gather_.refer(connection_->chain(), elsewhere);
  std::memcpy(gather_.room(), "three", 5);
  gather_.commit(connection_->chain(), 5);
  connection_->send(gather_);
  EXPECT_TRUE(connection_->chain().empty());
  EXPECT_EQ(client_reads(), copy_of(bytes_of("one two three")));
  connection_->send(gather_);  // nothing
  EXPECT_TRUE(client_reads().empty());
}

// ---- A client that does not read

TEST_F(ConnectionTest, WhatASlowClientDoesNotTakeIsKeptForIt) {
  auto sent = respond_until_stuck();
  respond("and this after it");
  const auto more = bytes_of("and this after it");
  sent.insert(sent.end(), more.begin(), more.end());
  const int before = ready_;
  EXPECT_EQ(client_reads_until(sent.size()), sent);
  EXPECT_GT(ready_, before);
  EXPECT_TRUE(connection_->wants_to_read());  // what it sent in the meantime
}

TEST_F(ConnectionTest, ASlowClientIsNotFinishedBeforeItHasAll) {
  const auto sent = respond_until_stuck();
  connection_->drain();
  EXPECT_FALSE(connection_->finishing());
  EXPECT_EQ(client_reads_until(sent.size()), sent);
  EXPECT_TRUE(connection_->finishing());
}

TEST_F(ConnectionTest, ASlowClientThatLeavesIsClosed) {
  respond_until_stuck();
  client_.reset();
  turn();
  EXPECT_EQ(connection_->state(), State::closed);
  EXPECT_TRUE(connection_->disposable());
}

// ---- The client leaves

TEST_F(ConnectionTest, AHalfCloseIsAnsweredToItsEnd) {
  client_sends(bytes_of("last words"));
  ASSERT_EQ(::shutdown(client_.get(), SHUT_WR), 0);
  receive_all();
  EXPECT_EQ(connection_->state(), State::draining);
  EXPECT_EQ(copy_of(connection_->input().bytes()), copy_of(bytes_of("last words")));
  connection_->add_request();
  EXPECT_FALSE(connection_->finishing());
  connection_->remove_request();
  respond("answer");
  ASSERT_TRUE(connection_->finishing());
  connection_->finish(gather_);
  EXPECT_EQ(connection_->state(), State::closed);
  EXPECT_EQ(client_reads(), copy_of(bytes_of("answer")));
  EXPECT_TRUE(client_at_end_);
}

TEST_F(ConnectionTest, ACloseIsSeenAsAnEnd) {
  client_.reset();
  receive_all();
  EXPECT_EQ(connection_->state(), State::draining);
  EXPECT_TRUE(connection_->finishing());
  connection_->finish(gather_);
  EXPECT_EQ(connection_->state(), State::closed);
}

TEST_F(ConnectionTest, AResetClosesIt) {
  respond("unread");
  client_.reset();  // with something unread: the connection is reset
  receive_all();
  EXPECT_EQ(connection_->state(), State::closed);
}

TEST_F(ConnectionTest, SendingToAClientThatIsGoneClosesIt) {
  connection_->add_request();
  client_.reset();
  respond("too late");
  EXPECT_EQ(connection_->state(), State::closed);
  EXPECT_FALSE(connection_->disposable());  // a request of it is still under way
  respond("later still");
  connection_->remove_request();
  EXPECT_TRUE(connection_->disposable());
}

TEST_F(ConnectionTest, AClosedConnectionIsKeptWhileThereIsOutputOfIt) {
  gather_.commit(connection_->chain(), 1);
  connection_->close();
  EXPECT_FALSE(connection_->disposable());
  connection_->send(gather_);
  EXPECT_TRUE(connection_->disposable());
}

TEST_F(ConnectionTest, WaitsForRoomWithSomethingToReadOrToForward) {
  EXPECT_FALSE(connection_->waits_for_room());
  client_sends(bytes_of("request"));
  turn();
  EXPECT_TRUE(connection_->waits_for_room());
  connection_->receive();
  EXPECT_FALSE(connection_->waits_for_room());
  connection_->holds_frames = true;
  EXPECT_TRUE(connection_->waits_for_room());
  connection_->drain();
  EXPECT_TRUE(connection_->waits_for_room());
  connection_->close();
  EXPECT_FALSE(connection_->waits_for_room());
}

TEST_F(ConnectionTest, AnEndOfFileDoesNotWaitForRoom) {
  client_.reset();
  turn();
  EXPECT_TRUE(connection_->wants_to_read());
  EXPECT_FALSE(connection_->waits_for_room());
}

TEST_F(ConnectionTest, ClosingEndsTheConnectionOnce) {
  connection_->close();
  connection_->close();
  client_reads();
  EXPECT_TRUE(client_at_end_);
  client_.reset();
  const int before = ready_;
  turn();
  EXPECT_EQ(ready_, before);
}

TEST_F(ConnectionTest, TheEndOfTheObjectIsTheEndOfTheConnection) {
  connection_.reset();
  client_reads();
  EXPECT_TRUE(client_at_end_);
}

// ---- The server leaves

TEST_F(ConnectionTest, DrainingItReadsNoMoreAndSaysSoWhenAllIsAnswered) {
  connection_->add_request();
  connection_->drain();
  EXPECT_EQ(connection_->state(), State::draining);
  client_sends(bytes_of("ignored"));
  turn();
  EXPECT_FALSE(connection_->wants_to_read());
  EXPECT_FALSE(connection_->finishing());
  connection_->remove_request();
  respond("answer");
  ASSERT_TRUE(connection_->finishing());
  const auto before = core::Clock::now();
  connection_->finish(gather_);
  EXPECT_EQ(connection_->state(), State::lingering);
  EXPECT_GT(connection_->linger_deadline(), before);
  EXPECT_LT(connection_->linger_deadline(), before + std::chrono::minutes(1));
  EXPECT_EQ(client_reads(), copy_of(bytes_of("answer")));
  EXPECT_TRUE(client_at_end_);
}

TEST_F(ConnectionTest, OutputThatIsNotSentYetKeepsItFromFinishing) {
  connection_->drain();
  gather_.commit(connection_->chain(), 1);
  EXPECT_FALSE(connection_->finishing());
  connection_->send(gather_);
  EXPECT_TRUE(connection_->finishing());
}

TEST_F(ConnectionTest, LingeringItDiscardsUntilTheClientCloses) {
  connection_->drain();
  connection_->finish(gather_);
  ASSERT_EQ(connection_->state(), State::lingering);
  const Bytes chunk(16384);
  std::size_t sent = 0;
  EXPECT_TRUE(support::eventually([&] { return sent > (std::size_t{8} << 20); },
                                  [&] {
                                    const ssize_t count =
                                        ::send(client_.get(), chunk.data(), chunk.size(), 0);
                                    sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
                                    turn();
                                  }));
  EXPECT_EQ(connection_->state(), State::lingering);
  EXPECT_TRUE(connection_->input().bytes().empty());
  respond("never sent");
  client_.reset();
  turn();
  EXPECT_EQ(connection_->state(), State::closed);
}

// ---- Refusals

TEST_F(ConnectionTest, ARefusalComesAfterTheAnswersThatAreDue) {
  client_sends(bytes_of("nonsense"));
  receive_all();
  connection_->add_request();
  connection_->refuse(Refusal::frame_too_long);
  EXPECT_EQ(connection_->state(), State::refusing);
  EXPECT_TRUE(connection_->input().bytes().empty());
  EXPECT_FALSE(connection_->finishing());
  connection_->drain();  // a shutdown changes nothing about it
  EXPECT_EQ(connection_->state(), State::refusing);
  connection_->remove_request();
  respond("answer ");
  ASSERT_TRUE(connection_->finishing());
  connection_->finish(gather_);
  EXPECT_EQ(connection_->state(), State::lingering);

  auto expected = copy_of(bytes_of("answer "));
  const auto error = protocol::make_error_frame(Refusal::frame_too_long,
                                                protocol::describe(Refusal::frame_too_long));
  expected.insert(expected.end(), error.begin(), error.end());
  EXPECT_EQ(client_reads(), expected);
  EXPECT_TRUE(client_at_end_);
}

TEST_F(ConnectionTest, ARefusalWaitsForASlowClient) {
  auto expected = respond_until_stuck();
  connection_->refuse(Refusal::length_mismatch);
  EXPECT_FALSE(connection_->finishing());
  const auto error = protocol::make_error_frame(Refusal::length_mismatch,
                                                protocol::describe(Refusal::length_mismatch));
  const auto finish_if_due = [&] {
    if (connection_->finishing()) connection_->finish(gather_);
  };
  Bytes got;
  EXPECT_TRUE(support::eventually([&] { return client_at_end_; },
                                  [&] {
                                    const auto more = client_reads();
                                    got.insert(got.end(), more.begin(), more.end());
                                    turn();
                                    finish_if_due();
                                  }));
  expected.insert(expected.end(), error.begin(), error.end());
  EXPECT_EQ(got, expected);
}

TEST_F(ConnectionTest, AfterAnEndOfFileARefusalIsStillSent) {
  client_sends(bytes_of("nonsense"));
  ASSERT_EQ(::shutdown(client_.get(), SHUT_WR), 0);
  receive_all();
  ASSERT_EQ(connection_->state(), State::draining);
  connection_->refuse(Refusal::frame_too_short);
  connection_->finish(gather_);
  EXPECT_EQ(connection_->state(), State::closed);
  const auto frame = client_reads();
  const auto view = protocol::parse_frame(frame, 1000);
  EXPECT_EQ(view.id, protocol::MessageId::error);
  EXPECT_TRUE(client_at_end_);
}

}  // namespace
}  // namespace offload::server
