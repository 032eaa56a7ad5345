#include "apps/server/client_connection.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "tests/server/client_connection_fixture.hpp"

namespace offload::server {
namespace {

using State = ConnectionState;
using Event = ConnectionEvent;

struct Transition {
  State from;
  Event event;
  State to;
};
constexpr std::array kTransitions{
    Transition{State::open, Event::end_of_file, State::draining},
    Transition{State::open, Event::drain, State::draining},
    Transition{State::open, Event::refuse, State::refusing},
    Transition{State::open, Event::close, State::closed},
    Transition{State::draining, Event::refuse, State::refusing},
    Transition{State::draining, Event::all_sent, State::lingering},
    Transition{State::draining, Event::close, State::closed},
    Transition{State::refusing, Event::refusal_sent, State::draining},
    Transition{State::refusing, Event::close, State::closed},
    Transition{State::lingering, Event::close, State::closed},
};

TEST(ConnectionState, AnEventWithoutATransitionChangesNothing) {
  for (int i = 0; i <= static_cast<int>(State::closed); ++i) {
    for (int j = 0; j <= static_cast<int>(Event::close); ++j) {
      const auto state = static_cast<State>(i);
      const auto event = static_cast<Event>(j);
      const auto* const found =
          std::find_if(kTransitions.begin(), kTransitions.end(), [&](const Transition& transition) {
            return transition.from == state && transition.event == event;
          });
      EXPECT_EQ(next_state(state, event), found == kTransitions.end() ? state : found->to)
          << "state " << i << ", event " << j;
    }
  }
}

TEST_F(ClientConnectionTest, ReadsWhatCame) {
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
TEST_F(ClientConnectionTest, AfterAReadThatFilledItsRoomThereMayBeMore) {
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

TEST_F(ClientConnectionTest, SendsABatchInOrder) {
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

TEST_F(ClientConnectionTest, WhatASlowClientDoesNotTakeIsKeptForIt) {
  auto sent = respond_until_stuck();
  respond("and this after it");
  const auto more = bytes_of("and this after it");
  sent.insert(sent.end(), more.begin(), more.end());
  const int before = ready_;
  EXPECT_EQ(client_reads_until(sent.size()), sent);
  EXPECT_GT(ready_, before);
  EXPECT_TRUE(connection_->wants_to_read());  // what it sent in the meantime
}

// Packets are sent whole or not at all.
TEST_F(ClientConnectionTest, WhatTheSocketDoesNotTakeAtAllIsKeptWhole) {
  connection_.reset();
  open(SOCK_SEQPACKET);
  std::string sent;
  for (int i = 0; connection_->backlog().empty() && i < 100'000; ++i) {
    const std::string text = std::to_string(i) + ' ';
    respond(text);
    sent += text;
  }
  ASSERT_FALSE(connection_->backlog().empty());
  EXPECT_EQ(client_reads_until(sent.size()), copy_of(bytes_of(sent)));
}

TEST_F(ClientConnectionTest, TellsHowManyBytesItHasTaken) {
  EXPECT_EQ(connection_->send(gather_), 0U);
  gather_.commit(connection_->chain(), 7);
  EXPECT_EQ(connection_->send(gather_), 7U);
  gather_.reset();
  client_.reset();
  gather_.commit(connection_->chain(), 7);
  EXPECT_EQ(connection_->send(gather_), 0U);
  EXPECT_EQ(connection_->state(), State::closed);
}

TEST_F(ClientConnectionTest, ASlowClientIsNotFinishedBeforeItHasAll) {
  const auto sent = respond_until_stuck();
  connection_->drain();
  EXPECT_FALSE(connection_->finishing());
  EXPECT_EQ(client_reads_until(sent.size()), sent);
  EXPECT_TRUE(connection_->finishing());
}

TEST_F(ClientConnectionTest, ASlowClientThatLeavesIsClosed) {
  respond_until_stuck();
  client_.reset();
  turn();
  EXPECT_EQ(connection_->state(), State::closed);
  EXPECT_TRUE(connection_->disposable());
}

}  // namespace
}  // namespace offload::server
