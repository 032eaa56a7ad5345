#include "comch/session/server_session.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "tests/comch/session/server_session_fixture.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::Clock;
using protocol::ExchangeConsumerId;
using protocol::KeepAlive;
using protocol::MessageId;
using protocol::Refusal;
using test::hello;
using test::kSilence;

using test::ServerSessionTest;

TEST_F(ServerSessionTest, OffersWelcomeAndChannels) {
  greet();
  const auto message = next(*worker_);
  ASSERT_EQ(message.id, MessageId::welcome);
  const auto welcome = protocol::Welcome::decode(message.payload);
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->version, protocol::kControlVersion);
  EXPECT_EQ(welcome->channel_count, kChannels);
  EXPECT_EQ(welcome->keep_alive_ms, 1000U);
  EXPECT_EQ(welcome->services, std::vector<std::string>{"reverse"});

  for (std::uint32_t i = 0; i < kChannels; ++i) {
    const auto offer = next(*worker_);
    ASSERT_EQ(offer.id, MessageId::channel_descriptor);
    EXPECT_EQ(offer.fds.size(), 4U);
    const auto descriptor = protocol::ChannelDescriptor::decode(offer.payload);
    ASSERT_TRUE(descriptor);
    EXPECT_EQ(descriptor->channel, i);
    EXPECT_EQ(descriptor->max_response_length, 48U);
    EXPECT_EQ(descriptor->service, 0U);
    EXPECT_EQ(descriptor->depth, 4U);
    EXPECT_EQ(descriptor->max_message_length, kMaxLength);
  }
  EXPECT_EQ(worker_events_.attached, 0);
}

TEST_F(ServerSessionTest, IsAttachedOnlyWhenAllChannelsAreReady) {
  greet_and_take_the_offer();
  exchange(1);  // in any order
  const auto response = next(*worker_);
  EXPECT_EQ(response.id, MessageId::exchange_consumer_id_response);
  const auto id = ExchangeConsumerId::decode(response.payload);
  ASSERT_TRUE(id);
  EXPECT_EQ(id->channel, 1U);
  EXPECT_EQ(worker_events_.attached, 0);
  exchange(0);
  EXPECT_TRUE(run_until([&] { return worker_events_.attached == 1; }));
}

TEST_F(ServerSessionTest, AWorkerThatCannotRingIsSilent) {
  auto mute = hello();
  mute.capabilities = 0;
  send(MessageId::hello, mute.encode());
  take_the_offer();
  for (std::uint32_t i = 0; i < kChannels; ++i) exchange(i);
  EXPECT_TRUE(run_until([&] { return worker_events_.attached == 1; }));
  EXPECT_EQ(worker_events_.last.channels.front()->wakeup, channel::Wakeup::polling);
}

TEST_F(ServerSessionTest, RefusesAnotherVersionByItsNumber) {
  auto other = hello();
  other.version = 2;
  auto message = other.encode();
  message.resize(message.size() + 10);  // it may say more
  send(MessageId::hello, message);
  expect_refused(Refusal::bad_version, "the worker speaks control version 2, this server 4");
  expect_next_worker_attaches();
}

TEST_F(ServerSessionTest, RefusesAMalformedGreeting) {
  auto message = hello().encode();
  message.pop_back();
  send(MessageId::hello, message);
  expect_refused(Refusal::bad_hello, "malformed");
  expect_next_worker_attaches();
}

TEST_F(ServerSessionTest, RefusesAGreetingWithoutTheMagic) {
  send(MessageId::hello, support::bytes_of("GET / HTTP/1.1"));
  expect_refused(Refusal::bad_hello, "malformed");
}

TEST_F(ServerSessionTest, RefusesAWorkerForTooFewChannels) {
  auto small = hello();
  small.max_channels = kChannels - 1;
  send(MessageId::hello, small.encode());
  expect_refused(Refusal::bad_hello, "the worker serves 1 channels, this server has 2");
  expect_next_worker_attaches();
}

TEST_F(ServerSessionTest, RefusesAWorkerForTooShortMessages) {
  auto small = hello();
  small.max_message_length = kMaxLength - 1;
  send(MessageId::hello, small.encode());
  expect_refused(Refusal::bad_hello, "messages of 599 bytes, this server's are up to 600");
}

TEST_F(ServerSessionTest, RefusesAWorkerWithoutItsService) {
  auto other = hello();
  other.services = {"echo", "reverse-more"};
  send(MessageId::hello, other.encode());
  expect_refused(Refusal::bad_hello,
                 "the worker has no service 'reverse'; it has: echo, reverse-more");
  expect_next_worker_attaches();
}

TEST_F(ServerSessionTest, AWorkerNeedsEachOfSeveralServices) {
  using Names = std::vector<std::string>;
  for (const Names& served : {Names{"crc32c", "reverse"}, Names{"reverse", "crc32c"},
                              Names{"echo", "crc32c", "reverse"}}) {
    worker_.reset();
    listen(test::kKeepAlive, served);
    worker_ = connect_to(address_);
    greet();
    expect_refused(Refusal::bad_hello, "the worker has no service 'crc32c'; it has: echo, reverse");
    worker_ = connect_to(address_);
    auto able = hello();
    able.services = {"crc32c", "echo", "reverse"};
    send(MessageId::hello, able.encode());
    EXPECT_EQ(next(*worker_).id, MessageId::welcome);
  }
}

TEST_F(ServerSessionTest, AWorkerThatJustFitsIsTaken) {
  auto exact = hello();
  exact.max_channels = kChannels;
  exact.max_message_length = kMaxLength;
  send(MessageId::hello, exact.encode());
  EXPECT_EQ(next(*worker_).id, MessageId::welcome);
}

TEST_F(ServerSessionTest, RefusesWhoDoesNotGreetFirst) {
  for (const MessageId id :
       {MessageId::keep_alive, MessageId::exchange_consumer_id_request, MessageId::start_shutdown,
        MessageId::shutdown_complete, MessageId::detach, MessageId::user_message,
        MessageId::attach_channel}) {
    worker_ = connect_to(address_);
    send(id, KeepAlive{}.encode());
    expect_refused(Refusal::bad_hello, "expected a greeting first");
  }
  EXPECT_EQ(worker_events_.shutdown_requests, 0);
}

TEST_F(ServerSessionTest, RefusesASecondGreeting) {
  greet_and_take_the_offer();
  greet();
  expect_refused(Refusal::misplaced_message, "message 16 does not belong");
  expect_next_worker_attaches();
}

TEST_F(ServerSessionTest, RefusesConsumerIdsThatAreWrong) {
  using Action = std::function<void()>;
  const Action wrong[] = {
      [this] { exchange(kChannels); },
      [this] { exchange(0xffff'ffff); },
      [this] { exchange(0), next(*worker_), exchange(0); },
      [this] {
        send(MessageId::exchange_consumer_id_request, support::bytes({1, 2, 3}));
      },
  };
  for (const auto& action : wrong) {
    worker_ = connect_to(address_);
    greet_and_take_the_offer();
    action();
    expect_refused(Refusal::bad_hello, "consumer id");
  }
  EXPECT_EQ(worker_events_.attached, 0);
}

TEST_F(ServerSessionTest, MakesOneChannelInATurn) {
  greet();
  ASSERT_TRUE(run_until([&] { return worker_->receive().has_value(); }));  // the welcome
  std::uint32_t offered = 0;
  for (int turns = 0; offered < kChannels && turns < 100; ++turns) {
    std::uint32_t now_offered = 0;
    while (worker_->receive()) ++now_offered;
    EXPECT_LE(now_offered, 1U);
    offered += now_offered;
    server_engine_.run_once(core::Clock::now());
  }
  EXPECT_EQ(offered, kChannels);
}

TEST_F(ServerSessionTest, MakesNoChannelForAWorkerThatIsToldToStop) {
  greet();
  ASSERT_TRUE(run_until([&] { return worker_->receive().has_value(); }));  // the welcome
  server_session_->start_shutdown(protocol::ShutdownReason::together);
  for (int turns = 0; turns < 10; ++turns) server_engine_.run_once(core::Clock::now());
  MessageId last{};
  std::uint32_t offered = 0;
  while (const auto message = worker_->receive()) {
    last = message->id;
    offered += last == MessageId::channel_descriptor ? 1U : 0U;
  }
  EXPECT_EQ(last, MessageId::start_shutdown);
  EXPECT_LT(offered, kChannels);
}

TEST_F(ServerSessionTest, RefusesAConsumerIdOfAChannelThatIsStillToBeMade) {
  greet();
  for (std::uint32_t i = 0; i < kChannels; ++i) exchange(i);
  auto message = next(*worker_);
  while (message.id != MessageId::error && !testing::Test::HasFailure()) message = next(*worker_);
  EXPECT_NE(protocol::parse_error(message.payload).text.find("does not have yet"),
            std::string::npos);
  EXPECT_TRUE(is_closed_on(*worker_));
  EXPECT_EQ(worker_events_.attached, 0);
}

TEST_F(ServerSessionTest, RefusesAWorkerForWhomNoChannelCanBeMade) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer takes descriptors itself, to look at the type of an object";
#endif
  server_engine_.run_once(core::Clock::now());  // takes its connection
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  greet();
  EXPECT_EQ(next(*worker_).id, MessageId::welcome);
  expect_refused(Refusal::busy, "cannot create its channels");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  expect_next_worker_attaches();
}

TEST_F(ServerSessionTest, RequiresTheMemoryOfAllChannelsOfAWorker) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer takes descriptors itself, to look at the type of an object";
#endif
  server_session_->require_channel_memory();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  // The limit allows one channel and a half: the lowest free number, and two more.
  const int free = ::dup(STDIN_FILENO);
  ASSERT_EQ(::close(free), 0);
  const rlimit few{static_cast<rlim_t>(free) + 2 * kChannels - 1, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto error = support::thrown_by([&] { server_session_->require_channel_memory(); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(error.code(), core::ErrorCode::no_memory);
  EXPECT_NE(std::string(error.what()).find("cannot create the 2 channels of a worker: "),
            std::string::npos);
  EXPECT_NE(std::string(error.what()).find("ulimit -n"), std::string::npos);
  expect_next_worker_attaches();
}

TEST_F(ServerSessionTest, RefusesMessagesThatDoNotBelong) {
  for (const MessageId id :
       {MessageId::client_request, MessageId::client_response, MessageId::welcome,
        MessageId::channel_descriptor, MessageId::exchange_consumer_id_response}) {
    worker_ = connect_to(address_);
    greet_and_take_the_offer();
    send(id);
    expect_refused(Refusal::misplaced_message, "does not belong on a control channel");
  }
}

TEST_F(ServerSessionTest, RefusesAMalformedKeepAlive) {
  attach_by_hand();
  send(MessageId::keep_alive, support::bytes({1}));
  expect_refused(Refusal::length_mismatch, "malformed keep-alive");
  EXPECT_EQ(worker_events_.lost, 1);
  EXPECT_EQ(worker_events_.last_loss, WorkerLoss::given_up);
  expect_next_worker_attaches();
}

TEST_F(ServerSessionTest, RefusesAMalformedStartOfShutdown) {
  attach_by_hand();
  send(MessageId::start_shutdown, support::bytes({1}));
  expect_refused(Refusal::length_mismatch, "malformed shutdown request");
  EXPECT_EQ(worker_events_.shutdown_requests, 0);
}

TEST_F(ServerSessionTest, RefusesWhatIsNoFrame) {
  attach_by_hand();
  ASSERT_EQ(::send(worker_->fd(), "junk", 4, 0), 4);
  expect_refused(Refusal::unknown_message, "not one whole frame");
  EXPECT_EQ(worker_events_.lost, 1);
  expect_next_worker_attaches();
}

TEST_F(ServerSessionTest, AWorkerMayRefuseAndLeave) {
  greet_and_take_the_offer();
  worker_->refuse(Refusal::bad_hello, "I do not like these channels");
  EXPECT_TRUE(is_closed_on(*worker_));
  EXPECT_TRUE(log_.has("I do not like these channels")) << log_.text();
  expect_next_worker_attaches();
}

TEST_F(ServerSessionTest, AStrangerThatSaysNothingKeepsNoWorkerOut) {
  const auto stranger = std::move(worker_);
  expect_next_worker_attaches();
}

TEST_F(ServerSessionTest, AStrangerThatSaysNothingIsDroppedInTheEnd) {
  server_engine_.run_once(Clock::now() + support::kBound);
  server_session_->tick(server_engine_.run_time() + std::chrono::seconds(4));
  EXPECT_FALSE(worker_->receive());
  server_session_->tick(server_engine_.run_time() + std::chrono::seconds(6));
  EXPECT_TRUE(is_closed_on(*worker_));
}

TEST_F(ServerSessionTest, AStrangerThatTalksNonsenseIsDroppedAtOnce) {
  ASSERT_EQ(::send(worker_->fd(), "junk", 4, 0), 4);
  expect_refused(Refusal::bad_hello, "not one whole frame");
}

TEST_F(ServerSessionTest, ManyStrangersMakeFewLinesOfLog) {
  for (int i = 0; i < 20; ++i) {
    worker_ = connect_to(address_);
    send(MessageId::keep_alive, KeepAlive{}.encode());
    expect_refused(Refusal::bad_hello, "expected a greeting first");
  }
  const std::string text = log_.text();
  EXPECT_TRUE(log_.has("is refused: expected a greeting first (0 more were not logged)")) << text;
  EXPECT_LT(std::ranges::count(text, '\n'), 10) << text;
}

TEST_F(ServerSessionTest, AWorkerThatIsNotReadyAfterAMinuteIsDropped) {
  greet_and_take_the_offer();
  server_session_->tick(server_engine_.run_time() + std::chrono::seconds(59));
  exchange(0);
  EXPECT_EQ(next(*worker_).id, MessageId::exchange_consumer_id_response);
  server_session_->tick(server_engine_.run_time() + std::chrono::seconds(61));
  EXPECT_TRUE(is_closed_on(*worker_));
  EXPECT_EQ(worker_events_.lost, 0);  // it never was attached
  expect_next_worker_attaches();
}

TEST_F(ServerSessionTest, AWorkerThatStartsForLongIsNotPressed) {
  greet_and_take_the_offer();
  server_session_->tick(server_engine_.run_time() + 3 * kSilence);  // a GPU may take that long
  for (std::uint32_t i = 0; i < kChannels; ++i) exchange(i);
  EXPECT_TRUE(run_until([&] { return worker_events_.attached == 1; }));
}

TEST_F(ServerSessionTest, KeepAlivesAreSentToAnAttachedWorkerOnly) {
  greet_and_take_the_offer();
  server_session_->tick(server_engine_.run_time());
  EXPECT_FALSE(worker_->receive());
  for (std::uint32_t i = 0; i < kChannels; ++i) exchange(i);
  ASSERT_TRUE(run_until([&] { return worker_events_.attached == 1; }));
  for (std::uint32_t i = 0; i < kChannels; ++i) next(*worker_);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    server_session_->tick(server_engine_.run_time());
    const auto message = next(*worker_);
    EXPECT_EQ(message.id, MessageId::keep_alive);
    const auto keep_alive = KeepAlive::decode(message.payload);
    ASSERT_TRUE(keep_alive);
    EXPECT_EQ(keep_alive->sequence, i);
  }
}

TEST_F(ServerSessionTest, AWorkerThatDoesNotReadIsLost) {
  attach_by_hand();
  for (int i = 0; i < 100'000 && worker_events_.lost == 0; ++i)
    server_session_->tick(server_engine_.run_time());
  EXPECT_EQ(worker_events_.lost, 1);
}

}  // namespace
}  // namespace offload::comch
