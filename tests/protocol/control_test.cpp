#include "protocol/control.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "protocol/bytes.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/thrown.hpp"

namespace offload::protocol {
namespace {

using support::Bytes;
using support::bytes;

constexpr std::uint16_t kOtherVersions[] = {0, 1, 2, 3, 5, 65535};

/// A message, its permanent form on the wire, and a comparison of two of its kind.
template <class Message>
struct Sample;

template <>
struct Sample<Hello> {
  static Hello message() {
    return {4, 0x0203'0405, 0x0607'0809, 0x0a0b'0c0d, "cpu", {"echo", "x"}};
  }
  static Bytes golden() {
    return bytes({'O', 'F', 'L', 'D', 0,   4,   2,   3, 4, 5,   6,   7,   8,   9, 10,
                  11,  12,  13,  3,   'c', 'p', 'u', 2, 4, 'e', 'c', 'h', 'o', 1, 'x'});
  }
  static bool equal(const Hello& a, const Hello& b) {
    return a.version == b.version && a.capabilities == b.capabilities &&
           a.max_channels == b.max_channels && a.max_message_length == b.max_message_length &&
           a.backend == b.backend && a.services == b.services;
  }
};

template <>
struct Sample<Welcome> {
  static Welcome message() { return {4, 0x0203, 0x0405'0607, {"reverse"}}; }
  static Bytes golden() {
    return bytes({0, 4, 2, 3, 4, 5, 6, 7, 1, 7, 'r', 'e', 'v', 'e', 'r', 's', 'e'});
  }
  static bool equal(const Welcome& a, const Welcome& b) {
    return a.version == b.version && a.channel_count == b.channel_count &&
           a.keep_alive_ms == b.keep_alive_ms && a.services == b.services;
  }
};

template <>
struct Sample<ChannelDescriptor> {
  static ChannelDescriptor message() {
    return {0x0102'0304,     0x0506'0708, 0x090a'0b0c, bytes({13, 14, 15}),
            bytes({16, 17}), 0x1213'1415, 22};
  }
  static Bytes golden() {
    return bytes({1, 2,  3,  4,  5, 6, 7,  8,  9,  10, 11, 12, 0,
                  3, 13, 14, 15, 0, 2, 16, 17, 18, 19, 20, 21, 22});
  }
  static bool equal(const ChannelDescriptor& a, const ChannelDescriptor& b) {
    return a.channel == b.channel && a.depth == b.depth &&
           a.max_message_length == b.max_message_length && a.access == b.access &&
           a.response_access == b.response_access &&
           a.max_response_length == b.max_response_length && a.service == b.service;
  }
};

template <>
struct Sample<ExchangeConsumerId> {
  static ExchangeConsumerId message() { return {0x0102'0304, 0x0506'0708}; }
  static Bytes golden() { return bytes({1, 2, 3, 4, 5, 6, 7, 8}); }
  static bool equal(const ExchangeConsumerId& a, const ExchangeConsumerId& b) {
    return a.channel == b.channel && a.consumer_id == b.consumer_id;
  }
};

template <>
struct Sample<Assignment> {
  static Assignment message() { return {0x0102'0304}; }
  static Bytes golden() { return bytes({1, 2, 3, 4}); }
  static bool equal(const Assignment& a, const Assignment& b) { return a.channels == b.channels; }
};

template <>
struct Sample<StartShutdown> {
  static StartShutdown message() { return {ShutdownReason::released}; }
  static Bytes golden() { return bytes({2}); }
  static bool equal(const StartShutdown& a, const StartShutdown& b) { return a.reason == b.reason; }
};

template <>
struct Sample<KeepAlive> {
  static KeepAlive message() { return {0x0102'0304'0506'0708}; }
  static Bytes golden() { return bytes({1, 2, 3, 4, 5, 6, 7, 8}); }
  static bool equal(const KeepAlive& a, const KeepAlive& b) { return a.sequence == b.sequence; }
};

template <>
struct Sample<UserMessage> {
  static UserMessage message() { return {0x0102'0304, bytes({5, 6})}; }
  static Bytes golden() { return bytes({1, 2, 3, 4, 0, 2, 5, 6}); }
  static bool equal(const UserMessage& a, const UserMessage& b) {
    return a.taken == b.taken && a.bytes == b.bytes;
  }
};

/// Returns an array of `size` bytes: first, first + 1, ...
template <class Array>
Array counting(int first) {
  Array array{};
  for (std::size_t i = 0; i < array.size(); ++i) {
    array[i] = static_cast<std::byte>(static_cast<std::size_t>(first) + i);
  }
  return array;
}
Bytes counted(int first, int count) {
  Bytes bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(first + i));
  return bytes;
}

template <>
struct Sample<AttachChannel> {
  static AttachChannel message() { return {0x0102'0304, counting<Token>(5), counted(30, 3)}; }
  static Bytes golden() {
    Bytes bytes = counted(1, 20);
    const Bytes endpoint = support::bytes({0, 3, 30, 31, 32});
    bytes.insert(bytes.end(), endpoint.begin(), endpoint.end());
    return bytes;
  }
  static bool equal(const AttachChannel& a, const AttachChannel& b) {
    return a.channel == b.channel && a.token == b.token && a.endpoint == b.endpoint;
  }
};

template <class Message>
class ControlMessage : public testing::Test {};

using Messages = testing::Types<Hello, Welcome, ChannelDescriptor, ExchangeConsumerId, Assignment,
                                StartShutdown, KeepAlive, UserMessage, AttachChannel>;
TYPED_TEST_SUITE(ControlMessage, Messages);

TYPED_TEST(ControlMessage, LooksLikeThisOnTheWire) {
  EXPECT_EQ(Sample<TypeParam>::message().encode(), Sample<TypeParam>::golden());
}

TYPED_TEST(ControlMessage, IsReadAsItWasWritten) {
  const auto decoded = TypeParam::decode(Sample<TypeParam>::golden());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_TRUE(Sample<TypeParam>::equal(*decoded, Sample<TypeParam>::message()));
}

TYPED_TEST(ControlMessage, EveryTruncationIsRefused) {
  const auto golden = Sample<TypeParam>::golden();
  for (std::size_t size = 0; size < golden.size(); ++size) {
    EXPECT_FALSE(TypeParam::decode(std::span(golden).first(size))) << size;
  }
}

TYPED_TEST(ControlMessage, TrailingBytesAreRefused) {
  auto golden = Sample<TypeParam>::golden();
  golden.push_back(std::byte{0});
  EXPECT_FALSE(TypeParam::decode(golden));
}

TYPED_TEST(ControlMessage, FitsAControlFrame) {
  EXPECT_LE(Sample<TypeParam>::message().encode().size(), kMaxControlLength);
}

TEST(Hello, WithoutTheMagicIsNone) {
  auto golden = Sample<Hello>::golden();
  golden[3] ^= std::byte{1};
  EXPECT_FALSE(Hello::decode(golden));
}

// This lets the receiver name the version that it refuses.
TEST(Hello, OfAnotherVersionDecodesAsFarAsItsNumber) {
  for (const std::uint16_t version : kOtherVersions) {
    const auto prefix = Writer{}.integer(kControlMagic).integer(version).take();
    for (const auto* rest : {"", "x", "whatever a later version may say"}) {
      auto message = prefix;
      for (const char c : std::string(rest)) message.push_back(static_cast<std::byte>(c));
      const auto hello = Hello::decode(message);
      ASSERT_TRUE(hello.has_value());
      EXPECT_EQ(hello->version, version);
    }
    EXPECT_FALSE(Hello::decode(std::span(prefix).first(5)));
  }
}

TEST(Welcome, OfAnotherVersionDecodesAsFarAsItsNumber) {
  for (const std::uint16_t version : kOtherVersions) {
    auto message = Writer{}.integer(version).take();
    EXPECT_FALSE(Welcome::decode(std::span(message).first(1)));
    for (int extra = 0; extra < 20; ++extra, message.push_back(std::byte{0xff})) {
      const auto welcome = Welcome::decode(message);
      ASSERT_TRUE(welcome.has_value());
      EXPECT_EQ(welcome->version, version);
    }
  }
}

TEST(Hello, ItsTextCanBeLogged) {
  auto hello = Sample<Hello>::message();
  hello.backend = "cpu\n\x1b[2J";
  EXPECT_EQ(Hello::decode(hello.encode())->backend, "cpu\\x0a\\x1b[2J");
}

TEST(Welcome, ItsTextCanBeLogged) {
  auto welcome = Sample<Welcome>::message();
  welcome.services = {"echo\r\x1b[2J"};
  EXPECT_EQ(Welcome::decode(welcome.encode())->services.front(), "echo\\x0d\\x1b[2J");
}

// Otherwise only the users of the last services would notice that these are missing.
TEST(ControlMessages, MoreServicesThanThereMayBeAreAnError) {
  Hello hello;
  hello.services.assign(kMaxServices, std::string(kMaxServiceName, 'x'));
  EXPECT_LE(hello.encode().size(), kMaxControlLength);
  EXPECT_EQ(Hello::decode(hello.encode())->services.size(), kMaxServices);
  hello.services.emplace_back("one-too-many");
  EXPECT_EQ(support::thrown_by([&] { static_cast<void>(hello.encode()); }).code(),
            core::ErrorCode::invalid_value);
}

TEST(Hello, StringsOfEveryLength) {
  for (const std::size_t size : {0U, 1U, 254U, 255U}) {
    auto hello = Sample<Hello>::message();
    hello.backend = std::string(size, 'b');
    const auto decoded = Hello::decode(hello.encode());
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(decoded->backend, hello.backend);
  }
  auto hello = Sample<Hello>::message();
  hello.backend = std::string(1000, 'b');
  const auto decoded = Hello::decode(hello.encode());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->backend, std::string(255, 'b'));
  EXPECT_LE(hello.encode().size(), kMaxControlLength);
}

TEST(ServiceName, IsOfLowerCaseLettersAndDigits) {
  for (const auto& name : {std::string("a"), std::string("z"), std::string("09"), std::string("-"),
                           std::string("a_b-c"), std::string(kMaxServiceName, 'x')}) {
    EXPECT_TRUE(is_service_name(name)) << name;
  }
  for (const auto& name : {std::string(), std::string(kMaxServiceName + 1, 'x'), std::string("A"),
                           std::string("`"), std::string("{"), std::string("a/"), std::string("a:"),
                           std::string("a b"), std::string("\xc3\xa4"), std::string("a\0", 2)}) {
    EXPECT_FALSE(is_service_name(name)) << name;
  }
}

TEST(Control, NumbersAreStable) {
  EXPECT_EQ(kControlMagic, 0x4f46'4c44U);
  EXPECT_EQ(kControlVersion, 4);
  EXPECT_EQ(kRingsDoorbell, 1U);
  EXPECT_EQ(kMaxControlLength, 1024U);
}

}  // namespace
}  // namespace offload::protocol
