#include "protocol/frame.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

#include "tests/support/bytes.hpp"

namespace offload::protocol {
namespace {

using State = FrameView::State;
using support::Bytes;
using support::bytes;
using support::bytes_of;
using support::copy_of;

constexpr std::uint32_t kLimit = 256;

/// Returns a header with any fields.
Bytes header(std::uint32_t wire_size, std::uint32_t id, std::uint32_t length) {
  return Writer{}.integer(wire_size).integer(id).integer(length).take();
}

void expect_bad(const Bytes& stream, Refusal reason) {
  const auto view = parse_frame(stream, kLimit);
  EXPECT_EQ(view.state, State::bad);
  EXPECT_EQ(view.reason, reason) << describe(view.reason);
}

TEST(Frame, GoldenRequest) {
  // These are the bytes that DOCA's client sends for "hello".
  const auto golden = bytes({0, 0, 0, 17, 0, 0, 0, 4, 0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o'});
  EXPECT_EQ(make_frame(MessageId::client_request, bytes_of("hello")), golden);
  const auto view = parse_frame(golden, kLimit);
  ASSERT_EQ(view.state, State::complete);
  EXPECT_EQ(view.id, MessageId::client_request);
  EXPECT_EQ(copy_of(view.payload), copy_of(bytes_of("hello")));
  EXPECT_EQ(view.size(), golden.size());
}

TEST(Frame, EveryByteOfEveryFieldCounts) {
  const auto memory =
      bytes({0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98});
  const auto fields = FrameHeader::load(memory.data());
  EXPECT_EQ(fields.wire_size, 0x0123'4567U);
  EXPECT_EQ(fields.msg_id, 0x89ab'cdefU);
  EXPECT_EQ(fields.length, 0xfedc'ba98U);
  Bytes stored(kFrameHeaderSize);
  store_header(stored.data(), MessageId::client_response, 0x0123'4567);
  EXPECT_EQ(stored, bytes({0x01, 0x23, 0x45, 0x73, 0, 0, 0, 5, 0x01, 0x23, 0x45, 0x67}));
}

TEST(Frame, EverySplitIsIncompleteUntilTheLastByte) {
  const auto frame = make_frame(MessageId::client_request, support::random_bytes(40, 1));
  for (std::size_t size = 0; size < frame.size(); ++size) {
    EXPECT_EQ(parse_frame(std::span(frame).first(size), kLimit).state, State::incomplete) << size;
  }
  EXPECT_EQ(parse_frame(frame, kLimit).state, State::complete);
}

TEST(Frame, MergedFramesComeOneByOne) {
  Bytes stream;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto frame = make_frame(MessageId::client_request, support::random_bytes(i * 7 % 50, i));
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  std::span<const std::byte> rest = stream;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto view = parse_frame(rest, kLimit);
    ASSERT_EQ(view.state, State::complete);
    EXPECT_EQ(copy_of(view.payload), support::random_bytes(i * 7 % 50, i));
    rest = rest.subspan(view.size());
  }
  EXPECT_TRUE(rest.empty());
}

TEST(Frame, AnEmptyPayloadIsLegal) {
  const auto frame = make_frame(MessageId::client_request, {});
  ASSERT_EQ(frame.size(), 12U);
  const auto view = parse_frame(frame, 0);
  EXPECT_EQ(view.state, State::complete);
  EXPECT_TRUE(view.payload.empty());
  EXPECT_EQ(view.size(), 12U);
}

TEST(Frame, TheLimitCountsPayloadBytes) {
  EXPECT_EQ(parse_frame(make_frame(MessageId::client_request, Bytes(kLimit)), kLimit).state,
            State::complete);
  expect_bad(make_frame(MessageId::client_request, Bytes(kLimit + 1)), Refusal::frame_too_long);
  EXPECT_EQ(parse_frame(header(13, 4, 1), 0).reason, Refusal::frame_too_long);
  EXPECT_EQ(parse_frame(header(12 + kLimit, 4, kLimit), kLimit).state, State::incomplete);
}

TEST(Frame, TooShortForItsOwnHeader) {
  for (std::uint32_t wire_size = 0; wire_size < 12; ++wire_size) {
    expect_bad(header(wire_size, 4, wire_size - 12), Refusal::frame_too_short);
  }
}

TEST(Frame, SizeAndLengthDisagree) {
  for (const std::uint32_t length :
       {0U, 4U, 6U, 17U, 0x0500'0000U, 0x8000'0005U, std::numeric_limits<std::uint32_t>::max()}) {
    expect_bad(header(17, 4, length), Refusal::length_mismatch);
  }
  expect_bad(header(12, 4, 1), Refusal::length_mismatch);
}

TEST(Frame, AHugeSizeIsTooLong) {
  for (const std::uint32_t size : {12 + kLimit + 1, 0x7fff'ffffU, 0x8000'0000U, 0xffff'ffffU}) {
    expect_bad(header(size, 4, size - 12), Refusal::frame_too_long);
  }
  // Even the largest limit leaves no room for a sum that overflows.
  const auto largest = std::numeric_limits<std::uint32_t>::max();
  EXPECT_EQ(parse_frame(header(largest, 4, largest - 12), largest).state, State::incomplete);
  EXPECT_EQ(parse_frame(header(largest, 4, largest), largest).reason, Refusal::length_mismatch);
}

TEST(Frame, ABadSizeIsSeenInItsFourBytes) {
  for (const std::uint32_t wire_size : {0U, 11U, 0xffff'ffffU}) {
    const auto bad = header(wire_size, 4, 0);
    EXPECT_EQ(parse_frame(std::span(bad).first(3), kLimit).state, State::incomplete);
    EXPECT_EQ(parse_frame(std::span(bad).first(4), kLimit).state, State::bad);
  }
}

TEST(Frame, ABadHeaderIsSeenBeforeItsPayload) {
  const auto unknown = header(17, 77, 5);
  EXPECT_EQ(parse_frame(std::span(unknown).first(11), kLimit).state, State::incomplete);
  expect_bad(unknown, Refusal::unknown_message);
}

TEST(Frame, KnownAndUnknownMessages) {
  const std::set<std::uint32_t> known{0,  1,  2,  3,  4,  5,  6,  16, 17,
                                      18, 19, 20, 21, 22, 23, 24, 25, 26};
  for (std::uint32_t id = 0; id < 300; ++id) {
    const auto view = parse_frame(header(12, id, 0), kLimit);
    EXPECT_EQ(view.state, known.count(id) == 1 ? State::complete : State::bad) << id;
    EXPECT_EQ(view.state == State::complete ? static_cast<std::uint32_t>(view.id) : id, id);
  }
  expect_bad(header(12, 0x0400'0000, 0), Refusal::unknown_message);
  expect_bad(header(12, 0xffff'ffff, 0), Refusal::unknown_message);
}

TEST(Frame, WhatFollowsAFrameDoesNotMatter) {
  auto stream = make_frame(MessageId::client_request, bytes_of("hello"));
  stream.resize(stream.size() + 100, std::byte{0xff});
  EXPECT_EQ(parse_frame(stream, kLimit).size(), 17U);
}

TEST(ErrorFrame, Golden) {
  const auto golden = bytes({0, 0, 0, 18, 0, 0, 0, 6, 0, 0, 0, 6, 0, 0, 0, 2, 'h', 'i'});
  EXPECT_EQ(make_error_frame(Refusal::frame_too_long, "hi"), golden);
}

TEST(ErrorFrame, IsReadAsItWasWritten) {
  const auto frame = make_error_frame(Refusal::worker_unavailable, "nobody is there: größer");
  const auto view = parse_frame(frame, kLimit);
  ASSERT_EQ(view.state, State::complete);
  EXPECT_EQ(view.id, MessageId::error);
  const auto message = parse_error(view.payload);
  EXPECT_EQ(message.code, Refusal::worker_unavailable);
  EXPECT_EQ(message.text, "nobody is there: größer");
}

TEST(ErrorFrame, ItsTextCanBeLogged) {
  const auto frame = make_error_frame(Refusal::busy, "\x1b[2J\nerror: forged");
  const auto view = parse_frame(frame, kLimit);
  EXPECT_EQ(parse_error(view.payload).text, "\\x1b[2J\\x0aerror: forged");
}

TEST(ErrorFrame, WithoutAnAllocationIsTheSame) {
  for (std::uint32_t number = 0; number <= 40; ++number) {
    const auto code = static_cast<Refusal>(number);
    Bytes room(kErrorFrameRoom, std::byte{0xee});
    const std::size_t size = store_error_frame(room.data(), code);
    ASSERT_LE(size, kErrorFrameRoom);
    EXPECT_EQ(copy_of(std::span(room).first(size)), make_error_frame(code, describe(code)));
    EXPECT_EQ(room.back(), std::byte{0xee});
  }
}

TEST(ErrorFrame, TooShortForACode) {
  for (std::size_t size = 0; size < 4; ++size) {
    const auto message = parse_error(Bytes(size, std::byte{1}));
    EXPECT_EQ(static_cast<std::uint32_t>(message.code), 0U);
    EXPECT_EQ(message.text, "");
  }
}

TEST(Refusals, NumbersAreStable) {
  const Refusal in_order[] = {Refusal::frame_too_short,
                              Refusal::frame_too_long,
                              Refusal::length_mismatch,
                              Refusal::unknown_message,
                              Refusal::misplaced_message,
                              Refusal::worker_unavailable,
                              Refusal::shutting_down,
                              Refusal::worker_failed,
                              Refusal::bad_version,
                              Refusal::bad_hello,
                              Refusal::busy};
  std::uint32_t number = 0;
  for (const Refusal refusal : in_order) EXPECT_EQ(static_cast<std::uint32_t>(refusal), ++number);
}

TEST(Refusals, EachHasASentenceThatFitsAFrameOfTheServer) {
  std::set<std::string_view> sentences;
  for (std::uint32_t number = 1; number <= 11; ++number) {
    const auto sentence = describe(static_cast<Refusal>(number));
    sentences.insert(sentence);
    EXPECT_LT(sentence.size(), 100U);
  }
  EXPECT_EQ(sentences.size(), 11U);
  EXPECT_EQ(sentences.count("unknown reason"), 0U);
  EXPECT_EQ(describe(static_cast<Refusal>(0)), "unknown reason");
}

}  // namespace
}  // namespace offload::protocol
