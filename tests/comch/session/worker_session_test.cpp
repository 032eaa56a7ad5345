#include "comch/session/worker_session.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "comch/transport/local/control.hpp"
#include "tests/comch/session/session_fixture.hpp"
#include "tests/support/bytes.hpp"

namespace offload::comch {
namespace {

using core::Clock;
using protocol::ExchangeConsumerId;
using protocol::MessageId;
using protocol::Refusal;
using protocol::Welcome;
using test::kSilence;

/// The worker's session with a hand-made server.
class WorkerSessionTest : public test::SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    listener_ = listen_local(address_);
    attach();
    server_ = listener_->accept();
    ASSERT_NE(server_, nullptr);
    const auto message = next(*server_);
    ASSERT_EQ(message.id, MessageId::hello);
    hello_ = protocol::Hello::decode(message.payload);
  }

  static Welcome welcome() { return {protocol::kControlVersion, kChannels, 1000, {"reverse"}}; }
  void send(MessageId id, std::span<const std::byte> payload = {}) { server_->send(id, payload); }
  void send_with_fds(MessageId id, std::span<const std::byte> payload, std::span<const int> fds) {
    dynamic_cast<LocalControlConnection&>(*server_).send_with_fds(id, payload, fds);
  }
  void send_welcome() { send(MessageId::welcome, welcome().encode()); }
  void send_channel(std::uint32_t index) {
    send_with_fds(MessageId::channel_descriptor, channels_[index]->descriptor().encode(),
                  channels_[index]->fds());
  }
  void send_consumer_id(std::uint32_t channel) {
    send(MessageId::exchange_consumer_id_response, ExchangeConsumerId{channel, channel}.encode());
  }
  void offer_all() {
    send_welcome();
    for (std::uint32_t i = 0; i < kChannels; ++i) send_channel(i);
  }
  void attach_by_hand() {
    offer_all();
    for (std::uint32_t i = 0; i < kChannels; ++i) {
      EXPECT_EQ(next(*server_).id, MessageId::exchange_consumer_id_request);
      send_consumer_id(i);
    }
    ASSERT_TRUE(run_until([&] { return server_events_.attached == 1; }));
  }

  /// The worker says what it does not like, once, and gives up.
  void expect_given_up(const std::string& part_of_reason) {
    ASSERT_TRUE(run_until([&] { return server_events_.lost == 1; }));
    EXPECT_NE(server_events_.reason.find(part_of_reason), std::string::npos)
        << server_events_.reason;
    EXPECT_FALSE(server_events_.refused);
    for (auto message = next(*server_); message.id != MessageId::error;) message = next(*server_);
  }

  std::unique_ptr<Listener> listener_;
  std::unique_ptr<ControlConnection> server_;
  std::optional<protocol::Hello> hello_;
};

TEST_F(WorkerSessionTest, GreetsFirst) {
  ASSERT_TRUE(hello_);
  EXPECT_EQ(hello_->version, protocol::kControlVersion);
  EXPECT_EQ(hello_->max_channels, 16U);
  EXPECT_EQ(hello_->backend, "test");
}

TEST_F(WorkerSessionTest, AnnouncesEachChannelOnceItIsServed) {
  offer_all();
  for (std::uint32_t i = 0; i < kChannels; ++i) {
    const auto message = next(*server_);
    ASSERT_EQ(message.id, MessageId::exchange_consumer_id_request);
    EXPECT_EQ(server_events_.channels.size(), kChannels);
    const auto id = ExchangeConsumerId::decode(message.payload);
    ASSERT_TRUE(id);
    EXPECT_EQ(id->channel, i);
    EXPECT_EQ(server_events_.attached, 0);
    send_consumer_id(i);
  }
  EXPECT_TRUE(run_until([&] { return server_events_.attached == 1; }));
}

TEST_F(WorkerSessionTest, GivesUpOnAnotherVersion) {
  auto other = welcome();
  other.version = 7;
  send(MessageId::welcome, other.encode());
  ASSERT_TRUE(run_until([&] { return server_events_.lost == 1; }));
  EXPECT_EQ(server_events_.reason, "the server speaks control version 7, this worker 4");
  EXPECT_EQ(server_events_.refused, protocol::Refusal::bad_version);
}

TEST_F(WorkerSessionTest, GivesUpOnAMalformedWelcome) {
  auto message = welcome().encode();
  message.pop_back();
  send(MessageId::welcome, message);
  expect_given_up("malformed or second welcome");
}

TEST_F(WorkerSessionTest, GivesUpOnASecondWelcome) {
  send_welcome();
  send_welcome();
  expect_given_up("malformed or second welcome");
}

TEST_F(WorkerSessionTest, GivesUpOnAWelcomeToNothing) {
  auto empty = welcome();
  empty.channel_count = 0;
  send(MessageId::welcome, empty.encode());
  expect_given_up("without channels or keep-alive");
}

TEST_F(WorkerSessionTest, GivesUpOnAWelcomeWithoutKeepAlive) {
  auto silent = welcome();
  silent.keep_alive_ms = 0;
  send(MessageId::welcome, silent.encode());
  expect_given_up("without channels or keep-alive");
}

TEST_F(WorkerSessionTest, GivesUpOnAChannelBeforeTheWelcome) {
  send_channel(0);
  expect_given_up("misplaced channel descriptor");
}

TEST_F(WorkerSessionTest, GivesUpOnChannelsOutOfOrder) {
  send_welcome();
  send_channel(1);
  expect_given_up("misplaced channel descriptor");
}

TEST_F(WorkerSessionTest, GivesUpOnAChannelOfAServiceThatTheWelcomeDidNotName) {
  send_welcome();
  auto descriptor = channels_[0]->descriptor();
  descriptor.service = 1;
  send_with_fds(MessageId::channel_descriptor, descriptor.encode(), channels_[0]->fds());
  expect_given_up("misplaced channel descriptor");
}

TEST_F(WorkerSessionTest, GivesUpOnAChannelWithoutAllItsDescriptors) {
  send_welcome();
  const auto fds = channels_[0]->fds();
  send_with_fds(MessageId::channel_descriptor, channels_[0]->descriptor().encode(),
                std::span(fds).first(3));
  expect_given_up("malformed or misplaced channel descriptor");
}

TEST_F(WorkerSessionTest, GivesUpOnAMalformedChannel) {
  send_welcome();
  auto message = channels_[0]->descriptor().encode();
  message.pop_back();
  send_with_fds(MessageId::channel_descriptor, message, channels_[0]->fds());
  expect_given_up("malformed or misplaced channel descriptor");
}

TEST_F(WorkerSessionTest, GivesUpOnAnImpossibleChannel) {
  send_welcome();
  auto descriptor = channels_[0]->descriptor();
  descriptor.depth = 3;
  send_with_fds(MessageId::channel_descriptor, descriptor.encode(), channels_[0]->fds());
  expect_given_up("invalid shape");
}

TEST_F(WorkerSessionTest, GivesUpOnAWelcomeToMoreChannelsThanItServes) {
  auto many = welcome();
  many.channel_count = 17;
  send(MessageId::welcome, many.encode());
  expect_given_up("17 channels; at most 16 are allowed");
}

// The second channel would take it over the limit; nothing of it is mapped.
TEST_F(WorkerSessionTest, GivesUpForGoodOnChannelsThatTakeTooMuchMemory) {
  send_welcome();
  send_channel(0);
  auto descriptor = channels_[1]->descriptor();
  descriptor.depth = 1024;
  send_with_fds(MessageId::channel_descriptor, descriptor.encode(), channels_[1]->fds());
  ASSERT_TRUE(run_until([&] { return server_events_.lost == 1; }));
  EXPECT_NE(server_events_.reason.find("channel 1 needs "), std::string::npos)
      << server_events_.reason;
  EXPECT_NE(server_events_.reason.find("--max-memory"), std::string::npos);
  EXPECT_EQ(server_events_.refused, Refusal::bad_hello);
  EXPECT_TRUE(server_events_.channels.empty());
  EXPECT_EQ(next(*server_).id, MessageId::error);
}

TEST_F(WorkerSessionTest, WhatChannelsTakeIsAddedUp) {
  constexpr std::uint32_t kDeep = 64;
  for (auto& channel : channels_) {
    const auto index = channel->descriptor().channel;
    channel = std::make_unique<channel::ChannelMemory>(index, kDeep, kMaxLength, -1);
  }
  const auto bytes = channels_[0]->endpoint().view.layout.bytes();
  ASSERT_LE(bytes, kMostMemory);
  ASSERT_GT(2 * bytes, kMostMemory);
  offer_all();
  ASSERT_TRUE(run_until([&] { return server_events_.lost == 1; }));
  EXPECT_NE(server_events_.reason.find("channel 1 needs "), std::string::npos)
      << server_events_.reason;
}

TEST_F(WorkerSessionTest, ChannelsMayTakeAllTheMemoryThatIsAllowed) {
  const auto bytes = kChannels * channels_[0]->endpoint().view.layout.bytes();
  worker_session_.emplace(worker_engine_, address_, test::hello(), bytes, server_events_);
  server_ = listener_->accept();
  ASSERT_NE(server_, nullptr);
  ASSERT_EQ(next(*server_).id, MessageId::hello);
  offer_all();
  EXPECT_EQ(next(*server_).id, MessageId::exchange_consumer_id_request);
  EXPECT_EQ(server_events_.lost, 0) << server_events_.reason;
}

// It takes a GPU some seconds; the server, which has nothing to say meanwhile, is not gone.
TEST_F(WorkerSessionTest, TheTimeInWhichTheBackEndStartsIsNoSilence) {
  server_events_.start_time = 10 * progress::Engine::kLongestDelay;
  const auto before = worker_engine_.run_time();
  const auto began = Clock::now();
  offer_all();
  EXPECT_EQ(next(*server_).id, MessageId::exchange_consumer_id_request);
  const auto counted = worker_engine_.run_time() - before;
  EXPECT_LE(counted + server_events_.start_time / 2, Clock::now() - began);
}

TEST_F(WorkerSessionTest, GivesUpOnOneChannelTooMany) {
  attach_by_hand();
  send_channel(0);
  ASSERT_TRUE(run_until([&] { return server_events_.lost == 1; }));
  EXPECT_EQ(server_events_.service, "reverse");
}

TEST_F(WorkerSessionTest, GivesUpOnConsumerIdsOutOfPlace) {
  send_consumer_id(0);
  expect_given_up("misplaced consumer id");
}

TEST_F(WorkerSessionTest, GivesUpOnConsumerIdsOutOfOrder) {
  offer_all();
  send_consumer_id(1);
  expect_given_up("misplaced consumer id");
}

TEST_F(WorkerSessionTest, GivesUpOnOneConsumerIdTooMany) {
  attach_by_hand();
  send_consumer_id(kChannels);
  expect_given_up("misplaced consumer id");
}

TEST_F(WorkerSessionTest, GivesUpOnMessagesThatDoNotBelong) {
  send(MessageId::client_request);
  expect_given_up("message 4 does not belong on a control channel");
}

TEST_F(WorkerSessionTest, GivesUpOnAMalformedKeepAlive) {
  send(MessageId::keep_alive, support::bytes({1}));
  expect_given_up("malformed keep-alive");
}

TEST_F(WorkerSessionTest, GivesUpOnAMalformedStartOfShutdown) {
  attach_by_hand();
  send(MessageId::start_shutdown, support::bytes({3}));
  expect_given_up("malformed shutdown request");
  EXPECT_EQ(server_events_.start_shutdowns, 0);
}

TEST_F(WorkerSessionTest, GivesUpOnAStartOfShutdownWithoutItsReason) {
  attach_by_hand();
  send(MessageId::start_shutdown);
  expect_given_up("malformed shutdown request");
}

TEST_F(WorkerSessionTest, HearsHowManyChannelsItServes) {
  attach_by_hand();
  for (const std::uint32_t count : {2U, 0U, 1U}) {
    send(MessageId::assignment, protocol::Assignment{count}.encode());
  }
  ASSERT_TRUE(run_until([&] { return server_events_.assignments.size() == 3; }));
  EXPECT_EQ(server_events_.assignments, (std::vector<std::uint32_t>{2, 0, 1}));
}

TEST_F(WorkerSessionTest, GivesUpOnAnAssignmentBeforeItServes) {
  send_welcome();
  send(MessageId::assignment, protocol::Assignment{1}.encode());
  expect_given_up("misplaced assignment");
}

TEST_F(WorkerSessionTest, GivesUpOnAUserMessageBeforeItServes) {
  send_welcome();
  send(MessageId::user_message, protocol::UserMessage{0, support::bytes({1})}.encode());
  expect_given_up("misplaced user message");
}

TEST_F(WorkerSessionTest, GivesUpOnAMalformedAssignment) {
  attach_by_hand();
  send(MessageId::assignment, support::bytes({1}));
  expect_given_up("malformed or misplaced assignment");
}

TEST_F(WorkerSessionTest, GivesUpOnWhatIsNoFrame) {
  ASSERT_EQ(::send(server_->fd(), "junk", 4, 0), 4);
  expect_given_up("not one whole frame");
}

TEST_F(WorkerSessionTest, PassesARefusalOn) {
  server_->refuse(Refusal::busy, "another worker is attached");
  ASSERT_TRUE(run_until([&] { return server_events_.lost == 1; }));
  EXPECT_EQ(server_events_.refused, Refusal::busy);
  EXPECT_EQ(server_events_.reason, "another worker is attached");
}

TEST_F(WorkerSessionTest, HearsOfTheShutdownAndSaysWhenItHasStopped) {
  attach_by_hand();
  send(MessageId::start_shutdown,
       protocol::StartShutdown{protocol::ShutdownReason::released}.encode());
  ASSERT_TRUE(run_until([&] { return server_events_.start_shutdowns == 1; }));
  EXPECT_EQ(server_events_.shutdown_reason, protocol::ShutdownReason::released);
  worker_session_->complete();
  EXPECT_EQ(next(*server_).id, MessageId::shutdown_complete);
}

TEST_F(WorkerSessionTest, AsksToBeLetGo) {
  attach_by_hand();
  worker_session_->request_detach();
  const auto message = next(*server_);
  EXPECT_EQ(message.id, MessageId::detach);
  EXPECT_TRUE(message.payload.empty());
}

TEST_F(WorkerSessionTest, AsksForTheShutdown) {
  attach_by_hand();
  worker_session_->request_shutdown();
  EXPECT_EQ(next(*server_).id, MessageId::start_shutdown);
}

TEST_F(WorkerSessionTest, ToAServerThatIsGoneItSaysNothing) {
  attach_by_hand();
  server_.reset();
  worker_session_->complete();
  worker_session_->request_shutdown();
  EXPECT_EQ(server_events_.lost, 1);
}

TEST_F(WorkerSessionTest, AServerThatNeverAnswersTheGreetingIsGone) {
  worker_session_->tick(worker_engine_.run_time() + std::chrono::seconds(4));
  EXPECT_EQ(server_events_.lost, 0);
  EXPECT_FALSE(server_->receive()) << "no keep-alive before the welcome";
  worker_session_->tick(worker_engine_.run_time() + std::chrono::seconds(6));
  EXPECT_EQ(server_events_.lost, 1);
}

TEST_F(WorkerSessionTest, TheWelcomeSetsThePace) {
  auto slow = welcome();
  slow.keep_alive_ms = 20'000;
  send(MessageId::welcome, slow.encode());
  send_channel(0);
  send_channel(1);
  EXPECT_EQ(next(*server_).id, MessageId::exchange_consumer_id_request);
  const auto now = worker_engine_.run_time();
  worker_session_->tick(now + 5 * kSilence);
  EXPECT_EQ(server_events_.lost, 0);
  EXPECT_EQ(worker_session_->next_tick(), worker_engine_.now() + std::chrono::seconds(20));
  EXPECT_EQ(next(*server_).id, MessageId::keep_alive);
}

}  // namespace
}  // namespace offload::comch
