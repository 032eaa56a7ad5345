#include <gtest/gtest.h>

#include "comch/session/server_session.hpp"
#include "tests/comch/session/server_session_fixture.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::Clock;
using protocol::KeepAlive;
using protocol::MessageId;
using protocol::Refusal;
using test::hello;

/// Several workers of one server, and their ends.
class ServerWorkersTest : public test::ServerSessionTest {};

TEST_F(ServerWorkersTest, EachWorkerHasMemoryOfItsOwn) {
  attach_by_hand();
  const auto first = worker_events_.last;
  const auto still_there = std::move(worker_);
  expect_next_worker_attaches();
  const auto& second = worker_events_.last;
  EXPECT_NE(first.id, second.id);
  for (std::uint32_t i = 0; i < kChannels; ++i) {
    const auto former = first.channels[i]->memory.endpoint().view;
    const auto now = second.channels[i]->memory.endpoint().view;
    now.response_header().requests.armed = 7;
    EXPECT_EQ(former.response_header().requests.armed, 0U);
    EXPECT_NE(first.channels[i]->memory.fds(), second.channels[i]->memory.fds());
  }
  EXPECT_EQ(worker_events_.lost, 0);
}

TEST_F(ServerWorkersTest, MoreWorkersThanThereMayBeAreRefused) {
  std::vector<std::unique_ptr<ControlConnection>> attached;
  for (std::size_t i = 0; i < kMostWorkers; ++i) {
    expect_next_worker_attaches();
    attached.push_back(std::move(worker_));
  }
  worker_ = connect_to(address_);
  greet();
  expect_refused(Refusal::busy, "3 workers are attached");
  attached.pop_back();
  ASSERT_TRUE(run_until([&] { return worker_events_.lost == 1; }));
  expect_next_worker_attaches();
}

TEST_F(ServerWorkersTest, AWorkerSaysWhatItComesFor) {
  auto greeting = hello();
  greeting.capabilities |= protocol::kStandsBy;
  send(MessageId::hello, greeting.encode());
  take_the_offer();
  for (std::uint32_t i = 0; i < kChannels; ++i) exchange(i);
  ASSERT_TRUE(run_until([&] { return worker_events_.attached == 1; }));
  EXPECT_TRUE(worker_events_.last.stands_by);
  EXPECT_FALSE(worker_events_.last.replaces);

  worker_ = connect_to(address_);
  greeting.capabilities = protocol::kReplaces;
  send(MessageId::hello, greeting.encode());
  take_the_offer();
  for (std::uint32_t i = 0; i < kChannels; ++i) exchange(i);
  ASSERT_TRUE(run_until([&] { return worker_events_.attached == 2; }));
  EXPECT_FALSE(worker_events_.last.stands_by);
  EXPECT_TRUE(worker_events_.last.replaces);
}

TEST_F(ServerWorkersTest, TellsAWorkerHowManyChannelsItServes) {
  attach_by_hand();
  server_session_->assign(worker_events_.last.id, 2);
  server_session_->assign(12345, 1);  // no such worker
  const auto message = next(*worker_);
  ASSERT_EQ(message.id, MessageId::assignment);
  EXPECT_EQ(protocol::Assignment::decode(message.payload)->channels, 2U);
}

TEST_F(ServerWorkersTest, AWorkerThatAsksToGoIsReleased) {
  attach_by_hand();
  send(MessageId::detach);
  ASSERT_TRUE(run_until([&] { return worker_events_.leaving.size() == 1; }));
  EXPECT_EQ(worker_events_.leaving.front(), worker_events_.last.id);
  EXPECT_EQ(worker_events_.shutdown_requests, 0);
  server_session_->release(worker_events_.last.id);
  const auto message = next(*worker_);
  ASSERT_EQ(message.id, MessageId::start_shutdown);
  EXPECT_EQ(protocol::StartShutdown::decode(message.payload)->reason,
            protocol::ShutdownReason::released);
  send(MessageId::shutdown_complete);
  ASSERT_TRUE(run_until([&] { return worker_events_.lost == 1; }));
  EXPECT_EQ(worker_events_.last_lost, worker_events_.last.id);
}

TEST_F(ServerWorkersTest, BeforeItServesAWorkerMayGoAtOnce) {
  greet_and_take_the_offer();
  send(MessageId::detach);
  EXPECT_EQ(next(*worker_).id, MessageId::start_shutdown);
  EXPECT_TRUE(worker_events_.leaving.empty());
}

TEST_F(ServerWorkersTest, AUserMessageBeforeItServesIsMisplaced) {
  greet_and_take_the_offer();
  send(MessageId::user_message, protocol::UserMessage{0, support::bytes({1})}.encode());
  expect_refused(Refusal::misplaced_message, "user message before it is attached");
}

TEST_F(ServerWorkersTest, EachUserMessageIsAcknowledged) {
  attach_by_hand();
  for (std::uint32_t taken = 0; taken < 3; ++taken) {
    send(MessageId::user_message, protocol::UserMessage{0, support::bytes({1})}.encode());
    const auto message = next(*worker_);
    ASSERT_EQ(message.id, MessageId::user_message);
    const auto acknowledgement = protocol::UserMessage::decode(message.payload);
    ASSERT_TRUE(acknowledgement);
    EXPECT_EQ(acknowledgement->taken, taken + 1);
    EXPECT_TRUE(acknowledgement->bytes.empty());
  }
}

TEST_F(ServerWorkersTest, ADetachOrACompletionCarriesNothing) {
  for (const MessageId id : {MessageId::detach, MessageId::shutdown_complete}) {
    expect_next_worker_attaches();
    for (std::uint32_t i = 0; i < kChannels; ++i) next(*worker_);
    send(id, support::bytes({1}));
    expect_refused(Refusal::length_mismatch, "malformed");
  }
  EXPECT_TRUE(worker_events_.leaving.empty());
}

TEST_F(ServerWorkersTest, AWorkerThatSpeaksIsNotSilentHoweverLongAgoItAttached) {
  constexpr auto kShort = std::chrono::milliseconds(4);
  worker_.reset();
  listen(kShort);
  worker_ = connect_to(address_);
  attach_by_hand();
  const auto attached = server_engine_.run_time();
  std::uint64_t number = 0;
  while (server_engine_.run_time() < attached + 2 * protocol::kSilentIntervals * kShort) {
    send(MessageId::keep_alive, KeepAlive{++number}.encode());
    server_session_->tick(server_engine_.run_time());
    ASSERT_EQ(worker_events_.lost, 0);
    server_engine_.run_once(Clock::now() + std::chrono::milliseconds(1));
  }
}

TEST_F(ServerWorkersTest, AMalformedUserMessageCostsItsSender) {
  attach_by_hand();
  send(MessageId::user_message, support::bytes({1}));
  ASSERT_TRUE(run_until([&] { return worker_events_.lost == 1; }));
  expect_refused(Refusal::unknown_message, "malformed user message");
}

TEST_F(ServerWorkersTest, NobodyIsSentNoUserMessage) {
  attach_by_hand();
  const auto error =
      support::thrown_by([&] { server_session_->send_user_message(12345, support::bytes({1})); });
  EXPECT_EQ(error.code(), core::ErrorCode::not_connected);
}

TEST_F(ServerWorkersTest, AStuckWorkerIsToldWhy) {
  attach_by_hand();
  server_session_->refuse(worker_events_.last.id, Refusal::worker_stuck, "nothing on channel 1");
  EXPECT_EQ(worker_events_.lost, 1);
  expect_refused(Refusal::worker_stuck, "nothing on channel 1");
}

TEST_F(ServerWorkersTest, KeepAlivesDoNotMakeAttachingLonger) {
  greet_and_take_the_offer();
  const auto greeted = server_engine_.run_time();
  send(MessageId::keep_alive, KeepAlive{1}.encode());
  server_session_->tick(server_engine_.run_time() + std::chrono::seconds(59));
  constexpr auto kLater = std::chrono::milliseconds(20);
  ASSERT_TRUE(run_until([&] { return server_engine_.run_time() >= greeted + kLater; }));
  send(MessageId::keep_alive, KeepAlive{2}.encode());
  // This is a minute after the greeting, but less than a minute after the last keep-alive.
  server_session_->tick(greeted + std::chrono::seconds(60) + kLater / 2);
  EXPECT_TRUE(is_closed_on(*worker_));
}

TEST_F(ServerWorkersTest, AllWorkersAreToldOfTheEnd) {
  attach_by_hand();
  std::unique_ptr<ControlConnection> first;
  first.swap(worker_);
  expect_next_worker_attaches();
  for (std::uint32_t i = 0; i < kChannels; ++i) next(*worker_);
  server_session_->start_shutdown(protocol::ShutdownReason::together);
  for (auto* const connection : {first.get(), worker_.get()}) {
    const auto message = next(*connection);
    ASSERT_EQ(message.id, MessageId::start_shutdown);
    EXPECT_EQ(protocol::StartShutdown::decode(message.payload)->reason,
              protocol::ShutdownReason::together);
    EXPECT_FALSE(server_session_->done());
    connection->send(MessageId::shutdown_complete, {});
  }
  EXPECT_TRUE(run_until([&] { return server_session_->done(); }));
}

}  // namespace
}  // namespace offload::comch
