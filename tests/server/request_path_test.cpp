#include "apps/server/request_path.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <span>
#include <string>
#include <thread>

#include "tests/server/fixtures/request_path_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/readable.hpp"

namespace offload::server {
namespace {

using protocol::Refusal;
using support::Bytes;
using support::bytes_of;
using support::random_bytes;
using support::reversed;
using test::error;
using test::response;
using test::send_all;
using test::send_request;

using RequestPathTest = test::RequestPathFixture;

// ---- Waiting

TEST_F(RequestPathTest, DeliveringSaysWhetherThereWereResponses) {
  open(4);
  Peer& peer = connect();
  send_request(peer.socket, bytes_of("1"));
  turn();
  ASSERT_TRUE(worker_->serve());
  engine_.run_once(core::TimePoint{});
  EXPECT_TRUE(path_->deliver());
  EXPECT_FALSE(path_->deliver());
  EXPECT_FALSE(path_->retry(/*together=*/true)) << "no worker was lost";
}

TEST_F(RequestPathTest, LengthsAreCountedForThoseWhoReadThem) {
  open(4);
  Peer& peer = connect();
  send_request(peer.socket, bytes_of("unread"));
  turn();
  EXPECT_EQ(metrics_.request_bytes.sum(), 0U);
  metrics_.is_shown = true;
  send_request(peer.socket, bytes_of("shown"));
  turn();
  EXPECT_EQ(metrics_.request_bytes.sum(), 5U);
  EXPECT_EQ(metrics_.requests.value(), 2U);
}

TEST_F(RequestPathTest, ClientsWaitWhileItIsClosed) {
  open(4);
  Peer& peer = connect();
  path_->set_open(false);
  send_request(peer.socket, bytes_of("early"));
  EXPECT_EQ(next(peer), std::nullopt);
  EXPECT_EQ(posted(), 0U);
  path_->set_open(true);
  turn();
  ASSERT_TRUE(worker_->serve());
  EXPECT_EQ(next(peer), response(bytes_of("ylrae")));
}

TEST_F(RequestPathTest, OnlyRequestsThatAreOverdueAreRefused) {
  constexpr auto kTimeout = std::chrono::milliseconds(50);
  open(4);
  Peer& peer = connect();
  send_request(peer.socket, bytes_of("old"));
  turn();
  std::this_thread::sleep_for(2 * kTimeout);
  engine_.note_wait(2 * kTimeout);
  send_request(peer.socket, bytes_of("new"));
  turn();
  path_->refuse_overdue({});
  EXPECT_EQ(path_->refused(), 0U);
  path_->refuse_overdue(kTimeout);
  EXPECT_EQ(next(peer), error(Refusal::request_timed_out));
  EXPECT_EQ(worker_->serve_all(), 2);
  EXPECT_EQ(next(peer), response(bytes_of("wen")));  // the late answer was dropped
  EXPECT_EQ(next(peer), std::nullopt);
}

TEST_F(RequestPathTest, KnowsSinceWhenTheWorkerOwesAnAnswer) {
  open(4);
  Peer& peer = connect();
  EXPECT_EQ(path_->silent_since(), std::nullopt);
  const auto before = engine_.run_time();
  send_request(peer.socket, bytes_of("1"));
  turn();
  ASSERT_TRUE(path_->silent_since());
  EXPECT_GE(*path_->silent_since(), before);
  const auto first = *path_->silent_since();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  send_request(peer.socket, bytes_of("2"));
  turn();
  EXPECT_EQ(*path_->silent_since(), first);
  ASSERT_TRUE(worker_->serve());
  EXPECT_EQ(next(peer), response(bytes_of("1")));
  ASSERT_TRUE(path_->silent_since());
  EXPECT_GT(*path_->silent_since(), first);
  ASSERT_TRUE(worker_->serve());
  EXPECT_EQ(next(peer), response(bytes_of("2")));
  EXPECT_EQ(path_->silent_since(), std::nullopt);
}

// ---- Requests and responses

// Both were posted at once; each has a slot.
TEST_F(RequestPathTest, AWorkerThatAnswersIsNotSilent) {
  open(4);
  Peer& peer = connect();
  for (int i = 0; i < 2; ++i) send_request(peer.socket, random_bytes(kLongest, 1));
  turn();
  ASSERT_EQ(posted(), 2U);
  const auto since = path_->silent_since();
  ASSERT_TRUE(since);
  const auto later = *since + std::chrono::milliseconds(5);
  ASSERT_TRUE(
      support::eventually([&] { return engine_.run_once({}), engine_.run_time() >= later; }));
  ASSERT_TRUE(worker_->serve());
  ASSERT_TRUE(next(peer));
  ASSERT_TRUE(path_->silent_since());
  EXPECT_GE(*path_->silent_since(), later);
}

TEST_F(RequestPathTest, ARequestGoesToTheWorkerAndItsResponseToTheClient) {
  open(4);
  Peer& peer = connect();
  for (const std::size_t length : {0U, 1U, 372U, 373U, 999U, 1000U}) {
    const Bytes request = random_bytes(length, static_cast<std::uint32_t>(length));
    send_request(peer.socket, request);
    turn();
    ASSERT_TRUE(worker_->serve()) << length;
    EXPECT_EQ(next(peer), response(reversed(request))) << length;
  }
  EXPECT_EQ(path_->answered(), 6U);
  EXPECT_EQ(path_->answered_well(), 6U);
  EXPECT_EQ(path_->refused(), 0U);
  EXPECT_EQ(metrics_.requests.value(), 6U);
  EXPECT_EQ(metrics_.transmitted.value(), metrics_.received.value());
}

TEST_F(RequestPathTest, AFrameIsForwardedOnceItIsWhole) {
  open(4);
  Peer& peer = connect();
  const auto frame = protocol::make_frame(protocol::MessageId::client_request, bytes_of("hello"));
  for (std::size_t i = 0; i < frame.size(); ++i) {
    EXPECT_EQ(posted(), 0U);
    send_all(peer.socket, std::span(frame).subspan(i, 1));
    turn();
  }
  EXPECT_EQ(posted(), 1U);
  EXPECT_EQ(worker_->serve_all(), 1);
  EXPECT_EQ(next(peer), response(bytes_of("olleh")));
}

TEST_F(RequestPathTest, EachClientGetsItsOwnResponsesInOrder) {
  open(64);
  Peer& one = connect();
  Peer& other = connect();
  for (std::uint32_t i = 0; i < 16; ++i) {
    send_request(one.socket, random_bytes(i * 50, i));
    turn();
    send_request(other.socket, random_bytes(i * 50, 100 + i));
    turn();
  }
  EXPECT_EQ(worker_->serve_all(), 32);
  for (std::uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(next(one), response(reversed(random_bytes(i * 50, i))));
    EXPECT_EQ(next(other), response(reversed(random_bytes(i * 50, 100 + i))));
  }
}

TEST_F(RequestPathTest, AFullChannelTakesMoreWhenItsResponsesWereDelivered) {
  open(2);
  Peer& peer = connect();
  for (const char* text : {"1", "2", "3", "4", "5"}) {
    send_request(peer.socket, bytes_of(text));
    turn();
  }
  EXPECT_EQ(posted(), 2U);
  EXPECT_FALSE(path_->has_room());
  turn();
  EXPECT_EQ(posted(), 2U);
  for (const char* text : {"1", "2", "3", "4", "5"}) {
    (void)worker_->serve_all();
    EXPECT_EQ(next(peer), response(bytes_of(text)));
  }
  EXPECT_TRUE(path_->has_room());
}

TEST_F(RequestPathTest, ARoundWakesTheWorkerForWhatWasPosted) {
  open(4);
  Peer& peer = connect();
  channel::Waiter waiter = worker_->waiter();
  const auto rung = [&] { return support::is_readable(waiter.fd(), 0); };
  waiter.arm();
  turn();
  EXPECT_FALSE(rung());
  send_request(peer.socket, {});
  turn();
  EXPECT_TRUE(rung());
}

TEST_F(RequestPathTest, WhatTheWorkerRefusesIsAnErrorAndTheClientStays) {
  open(4);
  Peer& peer = connect();
  for (const char* text : {"1", "2"}) {
    send_request(peer.socket, bytes_of(text));
    turn();
  }
  worker_->fail();
  ASSERT_TRUE(worker_->serve());
  EXPECT_EQ(next(peer), error(Refusal::worker_failed));
  EXPECT_EQ(next(peer), response(bytes_of("2")));
  EXPECT_EQ(path_->refused(), 1U);
}

// There are more responses than one batch's output has room for.
TEST_F(RequestPathTest, ManyResponsesAtOnce) {
  open(kMostSlots);
  Peer& peer = connect();
  for (std::uint32_t i = 0; i < 600; ++i) {
    send_request(peer.socket, random_bytes(i % 3 == 0 ? 372 : i, i));
    turn();
  }
  EXPECT_EQ(worker_->serve_all(), 600);
  for (std::uint32_t i = 0; i < 600; ++i) {
    ASSERT_EQ(next(peer), response(reversed(random_bytes(i % 3 == 0 ? 372 : i, i)))) << i;
  }
}

// There are so many that they share slots, and their responses come together.
TEST_F(RequestPathTest, OnceAllAreAnsweredNothingIsInFlight) {
  open(64);
  Peer& peer = connect();
  Bytes all;
  for (int i = 0; i < 20; ++i) {
    const auto frame = protocol::make_frame(protocol::MessageId::client_request, bytes_of("abc"));
    all.insert(all.end(), frame.begin(), frame.end());
  }
  send_all(peer.socket, all);
  turn();
  EXPECT_EQ(peer.client->connection().in_flight(), 20U);
  EXPECT_LT(worker_->serve_all(), 20);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(next(peer), response(bytes_of("cba")));
  EXPECT_EQ(peer.client->connection().in_flight(), 0U);
}

// ---- Clients that disconnect

TEST_F(RequestPathTest, TheResponseToAClientThatIsGoneIsDropped) {
  open(4);
  Peer& gone = connect();
  Peer& peer = connect();
  send_request(gone.socket, bytes_of("gone"));
  turn();
  send_request(peer.socket, bytes_of("here"));
  turn();
  gone.socket.reset();
  turn();
  EXPECT_EQ(table_.size(), 2U);
  EXPECT_EQ(worker_->serve_all(), 2);
  EXPECT_EQ(next(peer), response(bytes_of("ereh")));
  EXPECT_FALSE(next(peer).has_value());
  EXPECT_EQ(table_.size(), 1U);
  EXPECT_EQ(path_->requester().awaited(), 0U);
}

TEST_F(RequestPathTest, AHalfCloseIsAnsweredToItsEnd) {
  open(4);
  Peer& peer = connect();
  send_request(peer.socket, bytes_of("last words"));
  ASSERT_EQ(::shutdown(peer.socket.get(), SHUT_WR), 0);
  turn();
  EXPECT_EQ(worker_->serve_all(), 1);
  EXPECT_EQ(next(peer), response(bytes_of("sdrow tsal")));
  EXPECT_TRUE(ends(peer));
  EXPECT_EQ(table_.size(), 0U);
}

// ---- Clients that break the protocol

TEST_F(RequestPathTest, ABadFrameIsRefusedAfterTheAnswersThatAreDue) {
  const support::LogCapture log;
  open(4);
  Peer& peer = connect();
  send_request(peer.socket, bytes_of("good"));
  send_request(peer.socket, Bytes(kLongest + 1));
  send_request(peer.socket, bytes_of("not looked at"));
  turn();
  EXPECT_EQ(posted(), 1U);
  EXPECT_EQ(worker_->serve_all(), 1);
  EXPECT_EQ(next(peer), response(bytes_of("doog")));
  EXPECT_EQ(next(peer), error(Refusal::frame_too_long));
  EXPECT_TRUE(ends(peer));
  EXPECT_EQ(path_->refused(), 1U);
  EXPECT_TRUE(log.has("client 1, of unknown address, is disconnected: " +
                      std::string(protocol::describe(Refusal::frame_too_long))));
}

/// The first bytes of a client, and what the log says of it.
struct Stranger {
  std::string bytes;
  const char* says;
};
std::ostream& operator<<(std::ostream& out, const Stranger& stranger) {
  return out << stranger.says;
}

class RequestPathOfAStranger : public RequestPathTest,
                               public testing::WithParamInterface<Stranger> {
 protected:
  void send(Peer& peer) {
    send_all(peer.socket, std::as_bytes(std::span(GetParam().bytes)));
    turn();
  }
};

TEST_P(RequestPathOfAStranger, TheLogSaysWhatItSpeaks) {
  open(4);
  const support::LogCapture log;
  send(connect());
  EXPECT_TRUE(log.has(std::string("is disconnected: ") + GetParam().says)) << log.text();
}

// It has sent a valid frame: its later bytes are a wrong frame, whatever they look like.
TEST_P(RequestPathOfAStranger, OneThatHasSentARequestIsNone) {
  open(4);
  Peer& peer = connect();
  send_request(peer.socket, bytes_of("1"));
  turn();
  ASSERT_TRUE(worker_->serve());
  ASSERT_EQ(next(peer), response(bytes_of("1")));
  const support::LogCapture log;
  send(peer);
  EXPECT_TRUE(
      log.has("is disconnected: " + std::string(protocol::describe(Refusal::frame_too_long))) ||
      log.has("is disconnected: " + std::string(protocol::describe(Refusal::length_mismatch))))
      << log.text();
  const auto last = next(peer);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->id, protocol::MessageId::error);
}

INSTANTIATE_TEST_SUITE_P(
    Protocols, RequestPathOfAStranger,
    testing::Values(
        Stranger{"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                 "it is an HTTP client at a port that does not speak HTTP"},
        Stranger{std::string("\x16\3\1\2\0\1\0\1\xfc\3\3", 11) + std::string(64, 'x'),
                 "it is a TLS client at a port without TLS"},
        Stranger{std::string("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", 16) + std::string(12, '\1'),
                 "it begins with a PROXY header, and its address is not in --proxy-from"}));

TEST_F(RequestPathTest, AMessageThatIsNoRequestIsRefused) {
  open(4);
  Peer& peer = connect();
  send_all(peer.socket, protocol::make_frame(protocol::MessageId::client_response, {}));
  EXPECT_EQ(next(peer), error(Refusal::misplaced_message));
  EXPECT_TRUE(ends(peer));
  EXPECT_EQ(posted(), 0U);
}

// ---- While requests are refused

TEST_F(RequestPathTest, RequestsThatTheWorkerHasNotAnsweredGetTheError) {
  open(4);
  Peer& peer = connect();
  for (const char* text : {"1", "2", "3"}) {
    send_request(peer.socket, bytes_of(text));
    turn();
  }
  ASSERT_TRUE(worker_->serve());
  EXPECT_EQ(next(peer), response(bytes_of("1")));
  path_->set_refusal(Refusal::worker_unavailable);
  EXPECT_EQ(next(peer), error(Refusal::worker_unavailable));
  EXPECT_EQ(next(peer), error(Refusal::worker_unavailable));
  path_->set_refusal(Refusal::worker_unavailable);  // once is enough
  EXPECT_FALSE(next(peer).has_value());
  // The next worker answers them nevertheless, and the client does not get a second reply.
  path_->set_refusal(std::nullopt);
  EXPECT_EQ(worker_->serve_all(), 2);
  send_request(peer.socket, bytes_of("45"));
  turn();
  EXPECT_EQ(worker_->serve_all(), 1);
  EXPECT_EQ(next(peer), response(bytes_of("54")));
  EXPECT_EQ(path_->answered(), 2U);
  EXPECT_EQ(path_->refused(), 2U);
}

TEST_F(RequestPathTest, NewRequestsAreRefusedThoughTheChannelIsFull) {
  open(2);
  Peer& peer = connect();
  for (int i = 0; i < 3; ++i) {
    send_request(peer.socket, {});
    turn();
  }
  ASSERT_FALSE(path_->has_room());
  path_->set_refusal(Refusal::shutting_down);
  EXPECT_TRUE(path_->has_room());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next(peer), error(Refusal::shutting_down));
  EXPECT_EQ(posted(), 2U);
}

// There are more errors than one batch's output has room for, at the same time.
TEST_F(RequestPathTest, AllThatAFullChannelHoldsAreGivenUpAtOnce) {
  open(kMostSlots);
  Peer& peer = connect();
  for (std::uint32_t i = 0; i < kMostSlots; ++i) {
    send_request(peer.socket, {});
    if (i % 64 == 0) turn();
  }
  for (int i = 0; i < 20; ++i) turn();
  ASSERT_EQ(posted(), kMostSlots);
  path_->set_refusal(Refusal::worker_unavailable);
  for (std::uint32_t i = 0; i < kMostSlots; ++i) {
    ASSERT_EQ(next(peer), error(Refusal::worker_unavailable)) << i;
  }
  EXPECT_FALSE(next(peer).has_value());
}

// No other answer comes with theirs.
TEST_F(RequestPathTest, AnswersToRequestsThatWereGivenUpMakeRoom) {
  open(2);
  Peer& peer = connect();
  for (int i = 0; i < 2; ++i) {
    send_request(peer.socket, {});
    turn();
  }
  path_->set_refusal(Refusal::worker_unavailable);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(next(peer), error(Refusal::worker_unavailable));
  path_->set_refusal(std::nullopt);
  ASSERT_FALSE(path_->has_room());
  EXPECT_EQ(worker_->serve_all(), 2);
  turn();
  EXPECT_TRUE(path_->has_room());
}

TEST_F(RequestPathTest, AClientMayCloseWhileItsRequestsAreRefused) {
  open(2);
  path_->set_refusal(Refusal::worker_unavailable);
  Peer& peer = connect();
  // There are so many in one read that errors are sent before all of them are taken.
  Bytes all;
  for (int i = 0; i < 4000; ++i) {
    const auto frame = protocol::make_frame(protocol::MessageId::client_request, {});
    all.insert(all.end(), frame.begin(), frame.end());
  }
  send_all(peer.socket, all);
  peer.socket.reset();
  turn();
  ASSERT_EQ(peer.client->connection().state(), ConnectionState::closed);
  EXPECT_TRUE(peer.client->connection().input().bytes().empty());
  turn();
  EXPECT_EQ(table_.size(), 0U);
  EXPECT_LT(path_->refused(), 4000U);
}

}  // namespace
}  // namespace offload::server
