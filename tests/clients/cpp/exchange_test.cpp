#include "clients/cpp/src/exchange.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "clients/cpp/include/offload_client.h"
#include "tests/clients/cpp/fake_server.hpp"

namespace offload::clients {
namespace {

using std::chrono::seconds;

constexpr core::TimePoint kStart{};

/// An exchange, with the bytes that it sends and is given.
class ExchangeTest : public ::testing::Test {
 protected:
  void submit(std::string_view payload, std::uint64_t tag,
              core::TimePoint deadline = kStart + seconds(9), bool idempotent = false) {
    exchange_.submit(std::as_bytes(std::span(payload)), tag, deadline, idempotent);
  }
  /// Returns what it has to send, of which it is told that `most` bytes were taken.
  std::string send(std::size_t most = 1 << 20) {
    iovec pieces[8];
    std::string bytes;
    const std::size_t count = exchange_.gather(pieces);
    for (const iovec& piece : std::span(pieces).first(count)) {
      bytes.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
    }
    exchange_.add_sent(std::min(most, bytes.size()));
    return bytes;
  }
  void receive(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto room = exchange_.room();
      const std::size_t size = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), size);
      exchange_.add_received(size);
      bytes.remove_prefix(size);
    }
  }
  /// "tag:status:data or text" of the next outcome; "" if there is none.
  std::string next() {
    const auto outcome = exchange_.next();
    if (!outcome) return "";
    const std::string data(reinterpret_cast<const char*>(outcome->data.data()),
                           outcome->data.size());
    return std::to_string(outcome->tag) + ":" + std::to_string(outcome->status) + ":" + data +
           outcome->text;
  }

  Exchange exchange_{{.requests = 4, .response_length = 1000, .retries = true}};
};

TEST_F(ExchangeTest, WhatIsNotTakenIsSentFromThereOn) {
  std::string all;
  for (const std::string_view payload : {"one", "four", "seven"}) {
    submit(payload, 1);
    all += frame(payload, protocol::MessageId::client_request);
  }
  // Each number of bytes is taken at once: it ends in any place of any frame.
  for (std::size_t taken = 0, most = 1; taken < all.size(); taken += most++) {
    EXPECT_EQ(send(most), all.substr(taken));
  }
  EXPECT_EQ(send(), "");
}

TEST_F(ExchangeTest, ResponsesBelongToTheOldestRequests) {
  submit("one", 1);
  submit("two", 2);
  EXPECT_EQ(send(), frame("one", protocol::MessageId::client_request) +
                        frame("two", protocol::MessageId::client_request));
  receive(frame("eno") + frame("owt", protocol::MessageId::client_request));
  EXPECT_EQ(next(), "1:0:eno");
  EXPECT_EQ(next(), "2:0:owt");
  EXPECT_EQ(next(), "");
  EXPECT_TRUE(exchange_.is_idle());
}

TEST_F(ExchangeTest, FramesMayComeInAnyPieces) {
  submit("one", 1);
  submit("", 2);
  send();
  for (const char byte : frame("eno") + frame("")) {
    EXPECT_FALSE(exchange_.ending());
    receive({&byte, 1});
    if (exchange_.is_inside_frame()) continue;
  }
  EXPECT_EQ(next(), "1:0:eno");
  EXPECT_EQ(next(), "2:0:");
}

TEST_F(ExchangeTest, ARequestThatWasSentInPartIsContinued) {
  submit("one", 1);
  submit("two", 2);
  const std::string all = send(17);
  EXPECT_EQ(send(), all.substr(17));
  EXPECT_FALSE(exchange_.has_unsent());
}

TEST_F(ExchangeTest, ALateResponseIsDropped) {
  submit("late", 1, kStart + seconds(1));
  submit("next", 2, kStart + seconds(5));
  send();
  EXPECT_FALSE(exchange_.expire(kStart));
  EXPECT_EQ(exchange_.next_expiry(), kStart + seconds(1));
  EXPECT_TRUE(exchange_.expire(kStart + seconds(1)));
  EXPECT_EQ(next(), "1:-4:no response within the time limit");
  EXPECT_EQ(exchange_.next_expiry(), kStart + seconds(5));
  receive(frame("etal") + frame("txen"));
  EXPECT_EQ(next(), "2:0:txen");
  EXPECT_TRUE(exchange_.is_idle());
}

TEST_F(ExchangeTest, ALateErrorIsDropped) {
  submit("late", 1, kStart + seconds(1));
  submit("next", 2);
  send();
  exchange_.expire(kStart + seconds(1));
  EXPECT_EQ(next(), "1:-4:no response within the time limit");
  receive(error_frame(8, "failed") + frame("txen"));
  EXPECT_EQ(next(), "2:0:txen");
}

TEST_F(ExchangeTest, ARequestThatExpiresUnsentIsNeverSent) {
  submit("one", 1, kStart + seconds(1));
  submit("two", 2);
  exchange_.expire(kStart + seconds(1));
  EXPECT_EQ(send(), frame("two", protocol::MessageId::client_request));
  receive(frame("owt"));
  EXPECT_EQ(next(), "1:-4:no response within the time limit");
  EXPECT_EQ(next(), "2:0:owt");
}

// TLS may have a record of it under way, so its bytes must not change.
TEST_F(ExchangeTest, ARequestThatExpiresInTheMiddleIsSentWhole) {
  submit("one", 1, kStart + seconds(1));
  submit("two", 2, kStart + seconds(1));
  const std::string all = send(0);
  exchange_.expire(kStart + seconds(1));
  EXPECT_EQ(send(), all);
}

TEST_F(ExchangeTest, RequestsThatTimedOutCountUntilTheyAreAnswered) {
  for (int i = 0; i < 4; ++i) submit("late", 1, kStart);
  send();
  exchange_.expire(kStart);
  for (int i = 0; i < 4; ++i) next();
  EXPECT_TRUE(exchange_.is_idle());
  EXPECT_TRUE(exchange_.is_full());
  receive(frame("etal"));
  EXPECT_EQ(next(), "");
  EXPECT_FALSE(exchange_.is_full());
}

TEST_F(ExchangeTest, HeldBytesAreBounded) {
  const std::string longest(Exchange::kMostHeld, 'x');
  submit(longest, 1);
  EXPECT_TRUE(exchange_.is_full());
  send(std::size_t{32} << 20);
  EXPECT_FALSE(exchange_.is_full());
}

TEST_F(ExchangeTest, AnErrorFrameRefusesTheOldestRequest) {
  submit("one", 1);
  submit("two", 2);
  send();
  receive(error_frame(6, "no worker\n") + error_frame(77, "?"));
  EXPECT_EQ(next(), "1:6:worker_unavailable (6): no worker\\x0a");
  EXPECT_EQ(next(), "2:77:unknown code (77): ?");
  EXPECT_FALSE(exchange_.ending());
}

TEST_F(ExchangeTest, ARefusalBeforeTheRequestWasSentWhole) {
  submit(std::string(5000, 'x'), 1);
  submit("two", 2);
  send(100);
  receive(error_frame(2, "too long"));
  EXPECT_EQ(next(), "1:2:frame_too_long (2): too long");
  ASSERT_TRUE(exchange_.ending());
  EXPECT_TRUE(exchange_.ending()->may_retry);
  exchange_.lose(exchange_.ending()->status, exchange_.ending()->text, true);
  EXPECT_EQ(send(), frame("two", protocol::MessageId::client_request));
}

TEST_F(ExchangeTest, AnErrorThatIsAboutTheConnectionEndsIt) {
  submit("one", 1);
  send();
  receive(error_frame(22, "idle"));
  EXPECT_EQ(next(), "");
  ASSERT_TRUE(exchange_.ending());
  EXPECT_EQ(exchange_.ending()->status, OFFLOAD_IDLE_TIMED_OUT);
  exchange_.lose(exchange_.ending()->status, exchange_.ending()->text, false);
  EXPECT_EQ(next(), "1:22:the server closed the connection: idle_timed_out (22): idle");
}

TEST_F(ExchangeTest, TheNextConnectionGetsWhatWasNotSentAndWhatIsIdempotent) {
  submit("sent", 1);
  submit("again", 2, kStart + seconds(9), true);
  submit("begun", 3);
  submit("unsent", 4);
  send(12 + 4 + 12 + 5 + 12);
  receive(frame("tnes").substr(0, 5));
  exchange_.lose(OFFLOAD_LOST, "lost", true);
  EXPECT_EQ(next(), "1:-5:lost");
  EXPECT_EQ(next(), "");
  EXPECT_EQ(send(), frame("again", protocol::MessageId::client_request) +
                        frame("begun", protocol::MessageId::client_request) +
                        frame("unsent", protocol::MessageId::client_request));
  receive(frame("niaga"));
  EXPECT_EQ(next(), "2:0:niaga");
}

TEST_F(ExchangeTest, WithoutRetryAllAreLostInTheirOrder) {
  submit("sent", 1);
  send();
  submit("again", 2, kStart + seconds(9), true);
  exchange_.lose(OFFLOAD_LOST, "lost", false);
  EXPECT_EQ(next(), "1:-5:lost");
  EXPECT_EQ(next(), "2:-5:lost");
  EXPECT_TRUE(exchange_.is_idle());
  EXPECT_FALSE(exchange_.has_unsent());
}

TEST_F(ExchangeTest, RequestsThatTimedOutAreNotSentAgain) {
  submit("late", 1, kStart, true);
  send();
  exchange_.expire(kStart);
  EXPECT_EQ(next(), "1:-4:no response within the time limit");
  exchange_.lose(OFFLOAD_LOST, "lost", true);
  EXPECT_EQ(send(), "");
  EXPECT_EQ(next(), "");
}

struct Malformed {
  std::string bytes;
  std::string text;
};

class MalformedTest : public ExchangeTest, public ::testing::WithParamInterface<int> {};

TEST_P(MalformedTest, EndsTheConnection) {
  const Malformed cases[] = {
      {header(0, 5, 0), "a malformed frame: the frame is shorter than its own header"},
      {header(17, 5, 6), "a malformed frame: the frame's size and its message's length differ"},
      {header(0xffffffff, 5, 0xfffffff3), "a malformed frame: the message is longer"},
      {header(12 + 4097, 5, 4097), "a malformed frame: the message is longer"},
      {frame(std::string(1001, 'x')), "a response of 1001 bytes; at most 1000 are allowed"},
      {header(12, 99, 0), "a malformed frame: there is no message of this kind"},
      {frame("x", protocol::MessageId::hello), "message 16 instead of a response"},
      {frame("", protocol::MessageId::error), "a malformed error frame"},
      {error_frame(0, "zero"), "a malformed error frame"},
      {error_frame(0x80000000, "minus"), "a malformed error frame"},
      {"HTTP/1.1 400 Bad Request\r\n\r\n", "a malformed frame: the message is longer"}};
  const Malformed& malformed = cases[GetParam()];
  submit("one", 1);
  send();
  receive(malformed.bytes);
  EXPECT_EQ(next(), "");
  ASSERT_TRUE(exchange_.ending());
  EXPECT_EQ(exchange_.ending()->status, OFFLOAD_MALFORMED);
  EXPECT_EQ(exchange_.ending()->text.find("the server sent " + malformed.text), 0U)
      << exchange_.ending()->text;
  EXPECT_FALSE(exchange_.ending()->may_retry);
}
INSTANTIATE_TEST_SUITE_P(All, MalformedTest, ::testing::Range(0, 11));

TEST_F(ExchangeTest, AResponseWithoutARequestEndsTheConnection) {
  submit("one", 1);  // not sent
  receive(frame("eno"));
  EXPECT_EQ(next(), "");
  ASSERT_TRUE(exchange_.ending());
  EXPECT_EQ(exchange_.ending()->text, "the server sent a response without a request");
}

TEST_F(ExchangeTest, AbandonedRequestsAreDropped) {
  submit("one", 1);
  send();
  exchange_.abandon();
  EXPECT_TRUE(exchange_.is_idle());
  submit("two", 2);
  send();
  receive(frame("eno") + frame("owt"));
  EXPECT_EQ(next(), "2:0:owt");
}

}  // namespace
}  // namespace offload::clients
