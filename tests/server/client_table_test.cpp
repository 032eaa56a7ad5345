#include "apps/server/client_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/server/fixtures/client_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace offload::server {
namespace {

/// Replaces the RequestPath: a letter is a frame, and there is room for `room` of them.
struct Letters {
  bool has_room() const { return room != 0; }

  bool take_frames(Client& client) {
    ++calls;
    net::ReceiveBuffer& input = client.connection().input();
    for (; room != 0 && !input.bytes().empty(); --room) {
      taken += static_cast<char>(input.bytes().front());
      input.consume(1);
    }
    return input.bytes().empty();
  }

  void finish(Client& client) { client.connection().finish(gather); }

  int room = 1000;
  int calls = 0;
  std::string taken{};
  net::OutputBatch gather{8, 512};
};

/// A table of clients; the test acts as each of them.
class ClientTableTest : public testing::Test {
 protected:
  void add(int count) {
    for (int i = 0; i < count; ++i) add();
  }

  Client& add() {
    auto [client, server] = test::connected_sockets();
    sockets_.push_back(std::move(client));
    Client& added = table_.add(std::move(server));
    turn();  // that it is writable is the first event of all
    return added;
  }

  /// Sends `count` letters of a client, each client with its own letter: 'a' for the first.
  void send(std::size_t client, std::size_t count = 1) {
    const std::string letters(count, static_cast<char>('a' + client));
    test::send_all(sockets_[client], support::bytes_of(letters));
    engine_.run_once(core::TimePoint{});
  }

  /// Takes events, then runs one round with that room; returns the letters taken in it.
  std::string turn(int room = 1000) {
    engine_.run_once(core::TimePoint{});
    path_.room = room;
    path_.taken.clear();
    path_.calls = 0;
    worked_ = table_.serve_round(path_);
    return path_.taken;
  }

  bool has_ended(std::size_t client) {
    test::Received received;
    received.read(sockets_[client]);
    return received.ended;
  }

  progress::Engine engine_;
  Letters path_;
  ClientMemory memory_{std::uint64_t{1} << 30, 1};
  ThreadMetrics metrics_;
  ClientTable table_{engine_, /*max_message_length=*/64, ClientLimits{}, memory_, metrics_};
  std::vector<core::Fd> sockets_;
  bool worked_ = false;
};

// ---- Clients that wait for room

TEST_F(ClientTableTest, WaitsForRoomWithSomethingToReadOrToForward) {
  Client& client = add();
  EXPECT_FALSE(client.waits_for_room());
  send(0, 2);
  EXPECT_TRUE(client.waits_for_room());
  EXPECT_EQ(turn(2), "aa");
  EXPECT_FALSE(client.waits_for_room());
  send(0, 2);
  EXPECT_EQ(turn(1), "a");
  EXPECT_FALSE(client.connection().wants_to_read());
  EXPECT_TRUE(client.waits_for_room());  // with a frame that was read
  client.connection().drain();
  EXPECT_TRUE(client.waits_for_room());
  client.connection().close();
  EXPECT_FALSE(client.waits_for_room());
}

TEST_F(ClientTableTest, AnEndOfFileDoesNotWaitForRoom) {
  Client& client = add();
  sockets_[0].reset();
  engine_.run_once(core::TimePoint{});
  EXPECT_TRUE(client.connection().wants_to_read());
  EXPECT_FALSE(client.waits_for_room());
  turn(0);
  turn(0);
  EXPECT_EQ(table_.size(), 0U);
  EXPECT_EQ(metrics_.closed[static_cast<std::size_t>(ConnectionEnd::peer)].value(), 1U);
}

TEST_F(ClientTableTest, WithoutRoomNothingIsRead) {
  Client& client = add();
  send(0);
  EXPECT_EQ(turn(0), "");
  EXPECT_TRUE(client.connection().wants_to_read());
  EXPECT_TRUE(client.connection().input().bytes().empty());
  EXPECT_EQ(turn(1), "a");
}

TEST_F(ClientTableTest, ThoseThatWaitCostATurnNothing) {
  add(20);
  for (std::size_t i = 0; i < 20; ++i) send(i);
  turn(0);
  for (int i = 0; i < 3; ++i) {
    turn(0);
    EXPECT_FALSE(worked_);
    EXPECT_EQ(path_.calls, 0);
  }
  EXPECT_EQ(turn(2), "ab");
  EXPECT_LE(path_.calls, 4);
}

// ---- Fairness

TEST_F(ClientTableTest, WhoWasThereFirstIsServedFirst) {
  add(3);
  send(2);
  send(0);
  send(1);
  EXPECT_EQ(turn(1), "c");
  EXPECT_EQ(turn(2), "ab");
}

TEST_F(ClientTableTest, OneDeepPipelineStarvesNobody) {
  add(3);
  send(0, 100);
  send(1);
  send(2);
  std::string taken = turn(4);
  taken += turn(4);
  EXPECT_EQ(taken, "aaaabcaa");
}

// An event does not queue a client again: that would put it behind those that came later.
TEST_F(ClientTableTest, WhoWaitsKeepsItsPlaceWhenMoreComes) {
  add(2);
  send(0);
  send(1);
  EXPECT_EQ(turn(0), "");
  send(0);
  EXPECT_EQ(turn(1), "a");
  EXPECT_EQ(turn(2), "ba");
}

TEST_F(ClientTableTest, AllAreServedEquallyWhileTheyWantMoreThanThereIs) {
  add(5);
  for (std::size_t i = 0; i < 5; ++i) send(i, 100);
  std::map<char, int> counts;
  for (int i = 0; i < 25; ++i) {
    for (const char letter : turn(2)) ++counts[letter];
  }
  EXPECT_EQ(counts, (std::map<char, int>{{'a', 10}, {'b', 10}, {'c', 10}, {'d', 10}, {'e', 10}}));
}

// ---- Clients disconnect

TEST_F(ClientTableTest, AClientThatLeavesIsErased) {
  add(3);
  sockets_[0].reset();  // the last one takes its place in the table
  turn();
  turn();
  EXPECT_EQ(table_.size(), 2U);
  sockets_[2].reset();
  turn();
  turn();
  EXPECT_EQ(table_.size(), 1U);
  send(1);
  EXPECT_EQ(turn(), "b");
}

TEST_F(ClientTableTest, OneThatHasTakenAnothersPlaceIsErasedFromThere) {
  add(4);
  for (const std::size_t client : {0U, 3U, 1U}) {
    sockets_[client].reset();
    turn();
    EXPECT_TRUE(worked_);
    turn();
  }
  EXPECT_EQ(table_.size(), 1U);
  send(2);
  EXPECT_EQ(turn(), "c");
  EXPECT_TRUE(worked_);
  turn();
  EXPECT_FALSE(worked_);
  EXPECT_EQ(metrics_.received.value(), 1U);
  EXPECT_EQ(metrics_.closed[static_cast<std::size_t>(ConnectionEnd::peer)].value(), 3U);
}

TEST_F(ClientTableTest, AClientIsKeptWhileARequestOfItIsUnderWay) {
  Client& client = add();
  client.connection().add_request();
  sockets_[0].reset();
  for (int i = 0; i < 3; ++i) turn();
  EXPECT_EQ(table_.size(), 1U);
  client.connection().remove_requests(1);
  table_.make_ready(client);
  for (int i = 0; i < 3; ++i) turn();
  EXPECT_EQ(table_.size(), 0U);
}

TEST_F(ClientTableTest, DrainingTakesWhatWasReadAndNoMore) {
  Client& client = add();
  send(0, 2);
  EXPECT_EQ(turn(1), "a");
  send(0);
  table_.drain();
  EXPECT_EQ(turn(), "a");
  EXPECT_EQ(client.connection().state(), ConnectionState::lingering);
  EXPECT_TRUE(has_ended(0));
  sockets_[0].reset();
  turn();
  EXPECT_EQ(table_.size(), 0U);
}

TEST_F(ClientTableTest, AClientThatLingersIsClosedInTheEnd) {
  EXPECT_EQ(table_.next_deadline(), core::RunTime::max());
  add(2);
  table_.drain();
  turn();
  const auto due = table_.next_deadline();
  ASSERT_LT(due, core::RunTime::max());
  EXPECT_FALSE(table_.close_overdue());
  EXPECT_TRUE(support::eventually([&] { return turn(), table_.close_overdue(); }));
  EXPECT_GE(engine_.run_time(), due);
  EXPECT_TRUE(support::eventually([&] {
    turn();
    table_.close_overdue();
    return table_.size() == 0;
  }));
  EXPECT_EQ(table_.next_deadline(), core::RunTime::max());
}

TEST_F(ClientTableTest, WhatIsNoSocketIsNotAdded) {
  EXPECT_THROW(table_.add(core::Fd{}), core::Error);
  EXPECT_EQ(table_.size(), 0U);
  add();
  EXPECT_EQ(table_.size(), 1U);
}

TEST_F(ClientTableTest, ClearingClosesAll) {
  add(2);
  table_.clear();
  EXPECT_TRUE(has_ended(0));
  EXPECT_TRUE(has_ended(1));
}

}  // namespace
}  // namespace offload::server
