#include "apps/client/load/checker.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/bytes.hpp"

namespace offload::client {
namespace {

using protocol::MessageId;
using State = FrameCheck::State;
using support::bytes_of;
using Bytes = std::vector<std::byte>;

Bytes response(std::string_view payload, MessageId id = MessageId::client_response) {
  return protocol::make_frame(id, bytes_of(payload));
}

std::string fault_of(const Bytes& stream, std::string_view expected) {
  const auto state = judge(stream, bytes_of(expected)).state;
  EXPECT_TRUE(state == State::wrong || state == State::refused);
  return describe_fault(stream, bytes_of(expected));
}

TEST(Checker, AcceptsTheResponseAndTheReferenceServersKind) {
  for (const auto id : {MessageId::client_response, MessageId::client_request}) {
    const auto verdict = judge(response("olleh", id), bytes_of("olleh"));
    EXPECT_EQ(verdict.state, State::right);
    EXPECT_EQ(verdict.size, 17U);
  }
  EXPECT_EQ(judge(response(""), {}).state, State::right);
}

TEST(Checker, WaitsForEveryByte) {
  const auto stream = response("olleh");
  for (std::size_t size = 0; size < stream.size(); ++size) {
    EXPECT_EQ(judge(std::span(stream).first(size), bytes_of("olleh")).state, State::incomplete);
  }
}

TEST(Checker, LooksAtTheFirstFrameOnly) {
  auto stream = response("olleh");
  const auto next = response("wrong");
  stream.insert(stream.end(), next.begin(), next.end());
  EXPECT_EQ(judge(stream, bytes_of("olleh")).size, 17U);
}

TEST(Checker, EveryDifferingByteIsSeen) {
  const std::string expected = "0123456789abcdefg";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::string got = expected;
    got[i] ^= 1;
    const auto fault = fault_of(response(got), expected);
    EXPECT_NE(fault.find("offset " + std::to_string(i) + " of 17"), std::string::npos) << fault;
  }
}

TEST(Checker, AMismatchShowsOffsetExpectedAndGot) {
  EXPECT_EQ(fault_of(response("olxeh"), "olleh"),
            "the response differs at offset 2 of 5: expected 6c 65 68, got 78 65 68");
  EXPECT_EQ(fault_of(response("X123456789"), "0123456789"),
            "the response differs at offset 0 of 10: expected 30 31 32 33 34 35 36 37 ..., "
            "got 58 31 32 33 34 35 36 37 ...");
  EXPECT_EQ(fault_of(response("X1234567"), "01234567"),
            "the response differs at offset 0 of 8: expected 30 31 32 33 34 35 36 37, "
            "got 58 31 32 33 34 35 36 37");
  EXPECT_EQ(fault_of(response("X12345678"), "012345678"),
            "the response differs at offset 0 of 9: expected 30 31 32 33 34 35 36 37 ..., "
            "got 58 31 32 33 34 35 36 37 ...");
}

TEST(Checker, AnotherLengthIsWrongBeforeThePayloadIsThere) {
  EXPECT_EQ(
      fault_of(response("olle"), "olleh"),
      "the response has 4 bytes, expected 5; it differs at offset 4: expected 68, got nothing");
  EXPECT_EQ(fault_of(response("oxleh!"), "olleh"),
            "the response has 6 bytes, expected 5; it differs at offset 1: expected 6c 6c 65 68, "
            "got 78 6c 65 68 21");
  EXPECT_EQ(
      fault_of(response(""), "olleh"),
      "the response has 0 bytes, expected 5; it differs at offset 0: expected 6f 6c 6c 65 68, "
      "got nothing");
  auto longer = response("olleh!");
  longer.resize(protocol::kFrameHeaderSize);
  EXPECT_EQ(fault_of(longer, "olleh"), "the response has 6 bytes, expected 5");
}

TEST(Checker, AResponseLongerThanAnErrorMayBeIsShown) {
  EXPECT_EQ(fault_of(response("X" + std::string(5000, '.')), "olleh"),
            "the response has 5001 bytes, expected 5; it differs at offset 0: "
            "expected 6f 6c 6c 65 68, got 58 2e 2e 2e 2e 2e 2e 2e ...");
}

TEST(Checker, TheLengthAloneMayBeExpected) {
  const auto expected = Expected::of_length(5);
  EXPECT_EQ(judge(response("olleh"), expected).state, State::right);
  EXPECT_EQ(judge(response("other"), expected).state, State::right);
  for (const std::string_view payload : {"", "olle", "olleh!"}) {
    const auto verdict = judge(response(payload), expected);
    EXPECT_EQ(verdict.state, State::wrong);
    EXPECT_EQ(verdict.error, ErrorKind::mismatch);
  }
  EXPECT_EQ(describe_fault(response("olle"), expected),
            "the response has 4 bytes, expected 5; it begins with 6f 6c 6c 65");
}

TEST(Checker, AnyResponseMayBeExpectedButNoOtherFrame) {
  const auto expected = Expected::of_length(Expected::kAnyLength);
  const auto longest = response(std::string(kLongestMessage, 'x'));
  EXPECT_EQ(judge(longest, expected).state, State::right);
  EXPECT_EQ(judge(std::span(longest).first(100'000), expected).state, State::incomplete);
  EXPECT_EQ(judge(response(std::string(kLongestMessage + 1, 'x')), expected).state, State::wrong);
  EXPECT_EQ(judge(response(""), expected).state, State::right);
  EXPECT_EQ(judge(response("", MessageId::hello), expected).error, ErrorKind::bad_frame);
  EXPECT_EQ(judge(protocol::make_error_frame(protocol::Refusal::worker_failed, ""), expected).state,
            State::refused);
  const Bytes nonsense(12, std::byte{0x7f});
  EXPECT_EQ(judge(nonsense, expected).state, State::wrong);
  EXPECT_FALSE(describe_fault(nonsense, expected).empty());
}

TEST(Checker, AnAbsurdSizeIsWrongAtOnce) {
  const Bytes stream(4, std::byte{0x7f});
  EXPECT_EQ(fault_of(stream, "olleh"), "received a frame of 2139062143 bytes, expected 17");
}

TEST(Checker, AnotherProtocolIsNamed) {
  EXPECT_EQ(fault_of(support::copy_of(bytes_of("HTTP/1.1 400 Bad Request\r\n")), "olleh"),
            "received HTTP: this is not the port of an offload server's clients");
  EXPECT_EQ(fault_of(support::bytes({21, 3, 3, 0, 2, 2, 70}), "olleh"),
            "received TLS: the server requires --tls");
}

TEST(Checker, BadHeadersAreNamed) {
  auto too_short = response("olleh");
  protocol::store_big_endian(too_short.data(), std::uint32_t{11});
  EXPECT_NE(fault_of(too_short, "olleh").find("shorter than its own header"), std::string::npos);
  auto disagreeing = response("olleh");
  protocol::store_big_endian(disagreeing.data() + 8, std::uint32_t{4});
  EXPECT_NE(fault_of(disagreeing, "olleh").find("differ"), std::string::npos);
  auto unknown = response("olleh");
  protocol::store_big_endian(unknown.data() + 4, std::uint32_t{77});
  EXPECT_NE(fault_of(unknown, "olleh").find("no message of this kind"), std::string::npos);
}

TEST(Checker, AControlMessageIsNoResponse) {
  auto stream = response("olleh", MessageId::exchange_consumer_id_response);
  EXPECT_EQ(fault_of(stream, "olleh"), "received a message of kind 3, expected a response (5)");
  stream.resize(protocol::kFrameHeaderSize);
  EXPECT_EQ(fault_of(stream, "olleh"), "received a message of kind 3, expected a response (5)");
}

TEST(Checker, AnErrorFrameIsQuotedWithoutControlCharacters) {
  const auto stream =
      protocol::make_error_frame(protocol::Refusal::worker_unavailable, "none\x1b[31m\nhere");
  EXPECT_EQ(fault_of(stream, ""), "the server reports error 6: none\\x1b[31m\\x0ahere");
  EXPECT_EQ(judge(std::span(stream).first(14), {}).state, State::incomplete);
}

TEST(Checker, AnErrorFrameWithoutTextIsExplained) {
  const auto stream = protocol::make_error_frame(protocol::Refusal::worker_unavailable, "");
  EXPECT_EQ(fault_of(stream, "olleh"),
            "the server reports error 6: no worker is attached to process the request");
}

TEST(Checker, EachFaultHasItsKindAndWholeFramesTheirSize) {
  const auto expect = [](const Bytes& stream, State state, ErrorKind kind, std::size_t size) {
    const auto verdict = judge(stream, bytes_of("olleh"));
    EXPECT_EQ(verdict.state, state);
    EXPECT_EQ(verdict.error, kind);
    EXPECT_EQ(verdict.size, size);
  };
  expect(response("olxeh"), State::wrong, ErrorKind::mismatch, 17);
  expect(response("olle"), State::wrong, ErrorKind::mismatch, 16);
  auto cut = response("olleh!");
  cut.resize(protocol::kFrameHeaderSize);
  expect(cut, State::wrong, ErrorKind::mismatch, 0);
  expect(Bytes(4, std::byte{0x7f}), State::wrong, ErrorKind::mismatch, 0);
  expect(Bytes(4, std::byte{0}), State::wrong, ErrorKind::bad_frame, 0);
  expect(response("", MessageId::keep_alive), State::wrong, ErrorKind::bad_frame, 0);
  const auto refusal = protocol::make_error_frame(protocol::Refusal::request_timed_out, "");
  expect(refusal, State::refused, kind_of(protocol::Refusal::request_timed_out), refusal.size());
  const auto unknown = protocol::make_error_frame(protocol::Refusal{4711}, "");
  expect(unknown, State::refused, kind_of(protocol::Refusal{}), unknown.size());
}

TEST(Checker, ALongErrorFrameIsNotARefusal) {
  Bytes payload(kMaxErrorLength);
  EXPECT_EQ(judge(protocol::make_frame(MessageId::error, payload), bytes_of("olleh")).state,
            State::refused);
  payload.push_back({});
  EXPECT_EQ(judge(protocol::make_frame(MessageId::error, payload), bytes_of("olleh")).state,
            State::wrong);
}

TEST(Checker, AnErrorFrameOfTheResponsesLengthIsStillAnError) {
  const auto stream = response("\0\0\0\7x", MessageId::error);
  EXPECT_NE(fault_of(stream, std::string_view("\0\0\0\7x", 5)).find("the server reports error"),
            std::string::npos);
}

}  // namespace
}  // namespace offload::client
