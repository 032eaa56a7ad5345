#include <gtest/gtest.h>

#include "apps/client/load/load_connection.hpp"
#include "net/socket.hpp"
#include "tests/client/load/load_fixture.hpp"
#include "tests/net/free_port.hpp"

/// A load thread that counts errors and reconnects.
namespace offload::client {
namespace {

class LostConnection : public testing::Test {
 protected:
  static LoadPlan counting(std::uint64_t requests, std::uint32_t max_in_flight) {
    LoadPlan plan = plan_of(requests, max_in_flight);
    plan.stop_on_error = false;
    return plan;
  }
  static LoadPlan counting_open_loop() {
    LoadPlan plan = open_plan(1000, 0, 4);
    plan.stop_on_error = false;
    return plan;
  }
  FakeServer accept() { return accept_from(listener_); }
  static void answer(FakeServer& server, int count) {
    for (int i = 0; i < count; ++i) server.respond(reversed(server.read_request()));
  }

  const RequestPool pool_ = random_pool(40, Service::reverse);
  core::Fd listener_ = net::listen_tcp(net::resolve("127.0.0.1", 0).front(), 8);
  const Target target_{{net::local_address(listener_.get())}, {}};
};

TEST_F(LostConnection, IsMadeAgainAndWhatWasInFlightIsCounted) {
  RunningLoad running(counting(20, 4), pool_, target_);
  answer(running.server(), 5);
  for (int i = 0; i < 4; ++i) running.server().read_request();
  running.server().close();
  FakeServer again = accept();
  answer(again, 11);
  const auto& seen = running.finish();
  EXPECT_EQ(seen.valid, 16U);
  EXPECT_EQ(seen.errors.of(ErrorKind::closed), 4U);
  EXPECT_EQ(seen.errors.total(), 4U);
  EXPECT_EQ(seen.sent, 20U);
  EXPECT_EQ(seen.sent - seen.answered, 4U);
  EXPECT_EQ(seen.connect.count(), 1U);
  EXPECT_NE(running.fault().find("request 5: the server closed the connection; 4 requests"),
            std::string::npos)
      << running.fault();
}

TEST_F(LostConnection, AWrongResponseCostsOnlyItsRequest) {
  RequestLog log;
  RunningLoad running(counting(10, 2), pool_, target_, &log);
  answer(running.server(), 3);
  auto wrong = reversed(running.server().read_request());
  wrong[0] ^= std::byte{1};
  running.server().respond(wrong);
  answer(running.server(), 6);
  const auto& seen = running.finish();
  EXPECT_EQ(seen.valid, 9U);
  EXPECT_EQ(seen.answered, 10U);
  EXPECT_EQ(seen.errors.of(ErrorKind::mismatch), 1U);
  const auto chunks = log.take();
  ASSERT_EQ(chunks.size(), 1U);
  ASSERT_EQ(chunks[0].size(), 10U);
  EXPECT_EQ(chunks[0][3].error, ErrorKind::mismatch);
}

// With a window of one there is never more than one.
TEST_F(LostConnection, ARequestWithAWrongResponseIsInFlightNoMore) {
  RunningLoad running(counting(11, 1), pool_, target_);
  for (int i = 0; i < 10; ++i) {
    auto wrong = reversed(running.server().read_request());
    wrong[0] ^= std::byte{1};
    running.server().respond(wrong);
  }
  const auto last = reversed(running.server().read_request());
  std::this_thread::sleep_for(20ms);
  running.server().respond(last);
  const auto& seen = running.finish();
  EXPECT_EQ(seen.errors.of(ErrorKind::mismatch), 10U);
  EXPECT_LE(seen.in_flight_ns, static_cast<double>((seen.end - seen.begin).count()));
}

TEST_F(LostConnection, ARefusalCostsOnlyItsRequest) {
  RunningLoad running(counting(3, 1), pool_, target_);
  answer(running.server(), 1);
  running.server().read_request();
  ASSERT_TRUE(running.server().write(
      protocol::make_error_frame(protocol::Refusal::worker_unavailable, "")));
  answer(running.server(), 1);
  EXPECT_EQ(running.finish().valid, 2U);
  EXPECT_EQ(running.finish().errors.of(kind_of(protocol::Refusal::worker_unavailable)), 1U);
  EXPECT_EQ(running.finish().rx_bytes, 2 * (protocol::kFrameHeaderSize + 40) +
                                           protocol::kFrameHeaderSize +
                                           running.finish().rx_error_bytes);
  EXPECT_GT(running.finish().rx_error_bytes, 0U);
}

// A refusal that ends the connection is the reason for the close, which is not counted again.
TEST_F(LostConnection, ARefusalAndTheCloseAfterItAreOneError) {
  RunningLoad running(counting(3, 1), pool_, target_);
  running.server().read_request();
  ASSERT_TRUE(
      running.server().write(protocol::make_error_frame(protocol::Refusal::shutting_down, "")));
  // The next request is in flight before the close, which loses it.
  running.server().read_request();
  running.server().close();
  FakeServer again = accept();
  answer(again, 1);
  const auto& seen = running.finish();
  EXPECT_EQ(seen.errors.of(kind_of(protocol::Refusal::shutting_down)), 1U);
  EXPECT_EQ(seen.errors.of(ErrorKind::closed), 1U);
  EXPECT_EQ(seen.errors.total(), 2U);
}

TEST_F(LostConnection, NonsenseEndsTheConnection) {
  RunningLoad running(counting(4, 2), pool_, target_);
  running.server().read_request();
  ASSERT_TRUE(running.server().write(Bytes(64, std::byte{0})));
  FakeServer again = accept();
  answer(again, 2);
  const auto& seen = running.finish();
  EXPECT_EQ(seen.errors.of(ErrorKind::bad_frame), 1U);
  EXPECT_EQ(seen.errors.of(ErrorKind::closed), 1U);  // the one behind it
  EXPECT_EQ(seen.valid, 2U);
}

TEST_F(LostConnection, SilenceEndsTheConnection) {
  auto plan = counting(3, 2);
  plan.response_timeout = 500ms;  // the answer below takes less, also on a busy machine
  RunningLoad running(plan, pool_, target_);
  FakeServer again = accept();
  answer(again, 1);
  EXPECT_EQ(running.finish().errors.of(ErrorKind::time_out), 2U);
  EXPECT_EQ(running.finish().valid, 1U);
}

// A name may have several addresses, and a server may listen at any of them.
TEST_F(LostConnection, EachAddressOfTheTargetIsTried) {
  Target target;
  for (int i = 0; i < 2; ++i) {
    target.addresses.push_back(net::resolve("127.0.0.1", net::test::free_port()).front());
  }
  target.addresses.push_back(target_.addresses.front());
  RunningLoad running(counting(2, 1), pool_, target);
  running.server().read_request();
  running.server().close();
  FakeServer again = accept();
  answer(again, 1);
  const auto& seen = running.finish();
  EXPECT_EQ(seen.valid, 1U);
  EXPECT_EQ(seen.errors.of(ErrorKind::refused), 2U);
  EXPECT_EQ(seen.connect.count(), 1U);
}

TEST_F(LostConnection, IsGivenUpAfterAWhile) {
  auto plan = counting(10, 1);
  plan.connect_timeout = 100ms;
  listener_.reset();  // no socket listens
  RunningLoad running(plan, pool_, target_);
  running.server().read_request();
  running.server().close();
  const auto& seen = running.finish();
  EXPECT_EQ(seen.errors.of(ErrorKind::closed), 1U);
  EXPECT_GE(seen.errors.of(ErrorKind::refused), 2U);
  EXPECT_EQ(seen.errors.of(ErrorKind::never_connected), 1U);
}

TEST_F(LostConnection, ConnectionsAreMadeAnewOnPurpose) {
  auto plan = plan_of(10, 4);
  plan.reconnect_every = 4;
  RunningLoad running(plan, pool_, target_);
  answer(running.server(), 4);
  FakeServer second = accept();
  answer(second, 4);
  FakeServer third = accept();
  answer(third, 2);
  const auto& seen = running.finish();
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(seen.valid, 10U);
  EXPECT_EQ(seen.connect.count(), 2U);
  EXPECT_EQ(seen.errors.total(), 0U);
}

TEST_F(LostConnection, AResponseAfterTheDeadlineIsAnError) {
  auto plan = counting(3, 1);
  plan.deadline = 20ms;
  RequestLog log;
  RunningLoad running(plan, pool_, target_, &log);
  const auto request = running.server().read_request();
  std::this_thread::sleep_for(40ms);
  running.server().respond(reversed(request));
  answer(running.server(), 2);
  const auto& seen = running.finish();
  EXPECT_GE(seen.errors.of(ErrorKind::late), 1U);
  EXPECT_EQ(seen.valid + seen.errors.of(ErrorKind::late), 3U);
  EXPECT_EQ(seen.service.count(), 3U);  // its latency is one like others
  EXPECT_EQ(seen.answered, 3U);
  const auto chunks = log.take();
  ASSERT_EQ(chunks.size(), 1U);
  ASSERT_EQ(chunks[0].size(), 3U);
  EXPECT_EQ(chunks[0][0].error, ErrorKind::late);
}

// The time until a connection is given up begins with its loss, however long it was idle before.
TEST_F(LostConnection, AnIdleConnectionIsTriedAgain) {
  listener_.reset();
  const core::Fd silent = net::bind_tcp(target_.addresses.front());
  DrivenConnection driven(counting(1, 1), pool_, target_);
  driven.server.close();
  driven.run_until([&] { return driven.interval->errors.of(ErrorKind::closed) == 1; });
  for (std::uint64_t i = 1; i <= 2; ++i) {
    ASSERT_FALSE(driven.connection.over());
    driven.connection.on_deadline(driven.connection.deadline());
    driven.run_until([&] { return driven.interval->errors.of(ErrorKind::refused) == i; });
  }
  EXPECT_FALSE(driven.connection.over());
  EXPECT_EQ(driven.interval->errors.of(ErrorKind::never_connected), 0U);
}

TEST_F(LostConnection, AConnectionMadeAnewOnPurposeIsTriedAgain) {
  listener_.reset();
  const core::Fd silent = net::bind_tcp(target_.addresses.front());
  auto plan = counting(2, 1);
  plan.reconnect_every = 1;
  DrivenConnection driven(plan, pool_, target_);
  driven.connection.start();
  driven.answer(1);
  driven.run_until([&] { return driven.interval->errors.of(ErrorKind::refused) == 1; });
  EXPECT_FALSE(driven.connection.over());
  net::start_listening(silent.get(), 8);
  driven.connection.on_deadline(driven.connection.deadline());
  driven.run_until([&] { return driven.interval->sent == 2; });
  EXPECT_EQ(driven.interval->connect.count(), 1U);
  EXPECT_EQ(driven.interval->errors.total(), 1U);
}

TEST_F(LostConnection, WhatIsLostWasInFlightUntilThen) {
  RunningLoad running(counting(4, 4), pool_, target_);
  for (int i = 0; i < 4; ++i) running.server().read_request();
  std::this_thread::sleep_for(40ms);
  running.server().close();
  const auto& seen = running.finish();
  EXPECT_EQ(seen.errors.of(ErrorKind::closed), 4U);
  EXPECT_GE(seen.in_flight_ns, 4 * 40e6);
}

TEST_F(LostConnection, ASlotMayThinkWhileThereIsNoConnection) {
  auto plan = counting(3, 1);
  plan.think = 30ms;
  listener_.reset();
  core::Fd later = net::bind_tcp(target_.addresses.front());
  RunningLoad running(plan, pool_, target_);
  answer(running.server(), 1);
  running.server().close();
  std::this_thread::sleep_for(60ms);
  net::start_listening(later.get(), 8);
  listener_ = std::move(later);
  FakeServer again = accept();
  answer(again, 2);
  const auto& seen = running.finish();
  EXPECT_EQ(seen.valid, 3U);
  EXPECT_EQ(seen.sent, 3U);
  EXPECT_EQ(seen.errors.of(ErrorKind::closed), 1U);
  EXPECT_EQ(seen.errors.total(), 1U + seen.errors.of(ErrorKind::refused));
}

// With nothing in flight, too, a refusal is the reason for the close after it.
TEST_F(LostConnection, ARefusalWithoutARequestIsTheReasonForTheClose) {
  auto plan = counting(2, 1);
  plan.think = 300ms;
  RunningLoad running(plan, pool_, target_);
  answer(running.server(), 1);
  const auto refusal = protocol::make_error_frame(protocol::Refusal::shutting_down, "");
  ASSERT_TRUE(running.server().write(refusal));
  running.server().close();
  FakeServer again = accept();
  answer(again, 1);
  const auto& seen = running.finish();
  EXPECT_EQ(seen.valid, 2U);
  EXPECT_EQ(seen.errors.of(kind_of(protocol::Refusal::shutting_down)), 1U);
  EXPECT_EQ(seen.errors.total(), 1U);
  EXPECT_EQ(seen.rx_error_bytes, refusal.size());
}

// The rest of a request that was sent in part does not come on the next connection.
TEST_F(LostConnection, TheNextConnectionBeginsWithAWholeRequest) {
  const auto pool = random_pool(std::size_t{3} << 20, Service::echo);
  RunningLoad running(counting(3, 2), pool, target_);
  ASSERT_TRUE(running.server().read_more(kBound));
  running.server().close();
  FakeServer again = accept();
  for (int i = 0; i < 2; ++i) {
    const Bytes request = again.read_request();
    ASSERT_EQ(request.size(), std::size_t{3} << 20);
    again.respond(request);
  }
  EXPECT_EQ(running.finish().valid, 2U);
  EXPECT_EQ(running.finish().errors.total(), 1U);
}

TEST_F(LostConnection, TheNextConnectionSendsAfterAnErrorOfSending) {
  DrivenConnection driven(counting(2, 1), pool_, target_);
  driven.server.close();
  driven.connection.start();
  driven.run_until([&] { return driven.interval->errors.total() == 1; });
  ASSERT_EQ(driven.interval->tx_bytes, 0U);
  driven.connection.on_deadline(driven.connection.deadline());
  driven.run_until([&] { return driven.interval->tx_bytes != 0; });
  EXPECT_EQ(driven.interval->sent, 2U);
}

// Each failure doubles the pause, up to a limit; a connection that is made begins with the first
// pause.
TEST_F(LostConnection, ThePauseGrowsUntilAConnectionIsMade) {
  listener_.reset();
  core::Fd silent = net::bind_tcp(target_.addresses.front());
  DrivenConnection driven(counting(3, 1), pool_, target_);
  driven.connection.start();
  driven.server.close();
  core::Duration pause = kFirstPause;
  for (std::uint64_t errors = 1; errors <= 10; ++errors) {
    const core::TimePoint before = core::Clock::now();
    if (errors != 1) driven.connection.on_deadline(before);
    driven.run_until([&] { return driven.interval->errors.total() == errors; });
    EXPECT_GE(driven.connection.deadline(), before + pause);
    EXPECT_LE(driven.connection.deadline(), core::Clock::now() + pause);
    pause = std::min(2 * pause, kLongestPause);
  }
  EXPECT_EQ(pause, kLongestPause);
  net::start_listening(silent.get(), 8);
  listener_ = std::move(silent);
  driven.connection.on_deadline(core::Clock::now());
  driven.run_until([&] { return driven.interval->sent == 2; });
  accept().close();
  driven.run_until([&] { return driven.interval->errors.total() == 11; });
  EXPECT_LE(driven.connection.deadline(), core::Clock::now() + kFirstPause);
}

TEST_F(LostConnection, AnAttemptThatBeginsIsLookedAtInTime) {
  DrivenConnection driven(counting(2, 1), pool_, target_);
  driven.connection.start();
  driven.server.close();
  driven.run_until([&] { return driven.interval->errors.total() == 1; });
  const core::TimePoint now = core::Clock::now();
  driven.share.next_check = core::TimePoint::max();
  driven.connection.on_deadline(now);
  EXPECT_EQ(driven.connection.deadline(), now + kAttemptTime);
  EXPECT_EQ(driven.share.next_check, now + kAttemptTime);
}

TEST_F(LostConnection, WhatIsLostIsInFlightNoMore) {
  DrivenConnection driven(counting(8, 4), pool_, target_);
  driven.connection.start();
  EXPECT_EQ(driven.share.in_flight, 4U);
  driven.server.close();
  driven.run_until([&] { return driven.interval->errors.total() == 4; });
  EXPECT_EQ(driven.share.in_flight, 0U);
}

TEST_F(LostConnection, AResponseThatNobodyAskedForIsOneError) {
  DrivenConnection driven(counting_open_loop(), pool_, target_);
  driven.open();
  driven.connection.start();
  driven.server.respond(Bytes(40));
  driven.run_until([&] { return driven.interval->errors.total() != 0; });
  EXPECT_EQ(driven.interval->errors.of(ErrorKind::bad_frame), 1U);
  EXPECT_EQ(driven.interval->errors.total(), 1U);
  EXPECT_EQ(driven.share.with_room_count, 0U);
  EXPECT_TRUE(driven.is_quiet());
}

// It may come in parts, and is the reason for the close after it.
TEST_F(LostConnection, ARefusalThatNobodyAskedForIsOneError) {
  DrivenConnection driven(counting_open_loop(), pool_, target_);
  driven.open();
  driven.connection.start();
  const auto refusal = protocol::make_error_frame(protocol::Refusal::shutting_down, "bye");
  const std::span<const std::byte> bytes(refusal);
  ASSERT_TRUE(driven.server.write(bytes.first(10)));
  driven.run_until([&] { return driven.interval->rx_bytes == 10; });
  EXPECT_EQ(driven.interval->errors.total(), 0U);
  ASSERT_TRUE(driven.server.write(bytes.subspan(10)));
  driven.run_until([&] { return driven.interval->errors.total() != 0; });
  driven.server.close();
  driven.run_until([&] { return driven.connection.deadline() != core::TimePoint::max(); });
  EXPECT_EQ(driven.interval->errors.of(kind_of(protocol::Refusal::shutting_down)), 1U);
  EXPECT_EQ(driven.interval->errors.total(), 1U);
  EXPECT_EQ(driven.interval->rx_error_bytes, refusal.size());
}

}  // namespace
}  // namespace offload::client
