#include "apps/client/requests/verification.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/bytes.hpp"

namespace offload::client {
namespace {

using Kind = Verification::Kind;
using support::bytes_of;

Answers answers_of(const std::string& text, const core::Signals& signals) {
  return {*Verification::parse(text), Service::reverse, signals};
}

std::string text_of(const Expected& expected) {
  return {reinterpret_cast<const char*>(expected.bytes), expected.length};
}

TEST(Verification, Parse) {
  EXPECT_EQ(Verification::parse("builtin")->kind, Kind::builtin);
  EXPECT_EQ(Verification::parse("none")->kind, Kind::none);
  EXPECT_EQ(Verification::parse("recorded")->kind, Kind::recorded);
  EXPECT_EQ(Verification::parse("length")->kind, Kind::length);
  EXPECT_FALSE(Verification::parse("length")->bytes);
  EXPECT_EQ(Verification::parse("length:1k")->bytes, 1024U);
  EXPECT_EQ(Verification::parse("length:16777216")->bytes, 16777216U);
  EXPECT_EQ(Verification::parse("file:a:b")->argument, "a:b");
  EXPECT_EQ(Verification::parse("command:wc -c")->kind, Kind::command);
  EXPECT_EQ(Verification::parse("command:wc -c")->argument, "wc -c");
  EXPECT_EQ(Verification::parse("command:wc -c")->text, "command:wc -c");
  for (const char* const text : {"", "all", "None", "length:", "length:x", "length:16777217",
                                 "lengths", "file:", "command:"}) {
    EXPECT_FALSE(Verification::parse(text)) << text;
  }
}

TEST(Answers, ToARequest) {
  const core::Signals signals;
  EXPECT_EQ(text_of(answers_of("builtin", signals).to(bytes_of("abc"))), "cba");
  EXPECT_EQ(answers_of("none", signals).to(bytes_of("abc")).length, Expected::kAnyLength);
  EXPECT_EQ(answers_of("length", signals).to(bytes_of("abc")).length, 3U);
  EXPECT_EQ(answers_of("length:7", signals).to(bytes_of("abc")).length, 7U);
  EXPECT_EQ(answers_of("length:7", signals).to(bytes_of("abc")).bytes, nullptr);
}

TEST(Answers, ACommandReadsTheRequestAndPrintsTheAnswer) {
  const core::Signals signals;
  auto answers = answers_of("command:cat; printf '\\000.'", signals);
  for (const std::string text : {"", "abc", "\n"}) {
    EXPECT_EQ(text_of(answers.to(bytes_of(text))), text + std::string("\0.", 2));
  }
  const std::string large(1'000'000, 'x');  // more than a pipe holds
  EXPECT_EQ(text_of(answers_of("command:cat", signals).to(bytes_of(large))), large);
  // It need not read the request.
  EXPECT_EQ(text_of(answers_of("command:echo", signals).to(bytes_of(large))), "\n");
}

TEST(Answers, ACommandRunsOnceForEqualRequestsInTurn) {
  const core::Signals signals;
  auto answers = answers_of("command:date +%N", signals);
  const auto first = text_of(answers.to(bytes_of("a")));
  EXPECT_EQ(text_of(answers.to(bytes_of("a"))), first);
  EXPECT_NE(text_of(answers.to(bytes_of("b"))), first);
}

TEST(Answers, ACommandThatFailsIsRefused) {
  const core::Signals signals;
  // The text that it printed before it failed is no answer.
  for (const char* const command : {"exit 3", "echo a; exit 3", "cat; kill -9 $$"}) {
    EXPECT_THROW(answers_of(std::string("command:") + command, signals).to({}), InvalidInput)
        << command;
  }
  EXPECT_THROW(answers_of("file:/nowhere", signals), InvalidInput);
}

TEST(Answers, FewCommandsRun) {
  const core::Signals signals;
  EXPECT_EQ(answers_of("builtin", signals).most_of_class(1), SIZE_MAX);
  EXPECT_EQ(answers_of("command:cat", signals).most_of_class(1), 64U);
  EXPECT_EQ(answers_of("command:cat", signals).most_of_class(4), 16U);
  EXPECT_EQ(answers_of("command:cat", signals).most_of_class(1000), 2U);
}

}  // namespace
}  // namespace offload::client
