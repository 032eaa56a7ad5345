#include "apps/client/requests/request_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "core/error.hpp"
#include "protocol/frame.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

RequestPool pool_of(std::uint32_t size, Service service) {
  return RequestPool::of_sizes({{size, 1}}, {}, service);
}

/// Takes frame `number` apart, as the server would.
protocol::FrameView request_of(const RequestPool& pool, std::uint32_t number) {
  return protocol::parse_frame(pool.frames(number, 1), std::uint32_t{16} << 20);
}

std::span<const std::byte> answer_of(const RequestPool& pool, std::uint32_t number) {
  const Expected& expected = pool.response(number);
  return {expected.bytes, expected.length};
}

std::vector<std::byte> backwards(std::span<const std::byte> bytes) {
  return {bytes.rbegin(), bytes.rend()};
}

TEST(RequestPool, SameTextEverywhere) {
  const std::string_view text = "hello";
  const std::string_view answer = "hi";
  const auto pool =
      RequestPool::same(std::as_bytes(std::span(text)), std::as_bytes(std::span(answer)));
  EXPECT_EQ(pool.shortest_frame(), 17U);
  EXPECT_EQ(pool.longest_response(), 2U);
  for (std::uint32_t number = 0; number < pool.count_of(0); ++number) {
    const auto frame = request_of(pool, number);
    ASSERT_EQ(frame.state, protocol::FrameView::State::complete);
    EXPECT_EQ(frame.id, protocol::MessageId::client_request);
    EXPECT_TRUE(std::ranges::equal(frame.payload, std::as_bytes(std::span(text))));
    EXPECT_TRUE(std::ranges::equal(answer_of(pool, number), std::as_bytes(std::span(answer))));
  }
}

TEST(RequestPool, AResponseOfAnyLengthHasThatOfTheLongestMessage) {
  const auto pool =
      RequestPool::same(support::bytes_of("hello"), Expected::of_length(Expected::kAnyLength));
  EXPECT_EQ(pool.longest_response(), kLongestMessage);
  const auto empty = RequestPool::same(support::bytes_of("hello"), Expected::of_length(0));
  EXPECT_EQ(empty.longest_response(), 0U);
}

TEST(RequestPool, RandomRequestsDifferAndHaveTheirResponses) {
  for (const std::uint32_t size : {16U, 17U, 255U, 4096U}) {
    const auto pool = pool_of(size, Service::reverse);
    EXPECT_EQ(pool.count_of(0), 256U);
    std::set<std::vector<std::byte>> seen;
    for (std::uint32_t number = 0; number < pool.count_of(0); ++number) {
      const auto frame = request_of(pool, number);
      ASSERT_EQ(frame.payload.size(), size);
      EXPECT_TRUE(std::ranges::equal(backwards(frame.payload), answer_of(pool, number)));
      seen.insert(backwards(frame.payload));
      EXPECT_FALSE(std::ranges::equal(frame.payload.first(8), frame.payload.subspan(8, 8)));
    }
    EXPECT_EQ(seen.size(), pool.count_of(0));
  }
}

TEST(RequestPool, EachByteOfARandomRequestIsRandom) {
  const auto pool = pool_of(17, Service::reverse);
  for (std::size_t i = 0; i < 17; ++i) {
    std::set<std::byte> values;
    for (std::uint32_t number = 0; number < pool.count_of(0); ++number) {
      values.insert(request_of(pool, number).payload[i]);
    }
    EXPECT_GT(values.size(), 100U) << "byte " << i;  // of 256 numbers, 162 differ on average
  }
}

TEST(RequestPool, EmptyRequests) {
  const auto pool = pool_of(0, Service::reverse);
  EXPECT_EQ(pool.shortest_frame(), protocol::kFrameHeaderSize);
  EXPECT_TRUE(request_of(pool, 0).payload.empty());
  EXPECT_TRUE(answer_of(pool, pool.count_of(0) - 1).empty());
}

TEST(RequestPool, LargestRequestsAreFewButNotOne) {
  constexpr std::uint32_t kSize = std::uint32_t{16} << 20;
  const auto pool = pool_of(kSize, Service::echo);
  ASSERT_EQ(pool.count_of(0), 2U);
  EXPECT_FALSE(std::ranges::equal(request_of(pool, 0).payload, request_of(pool, 1).payload));
  EXPECT_TRUE(std::ranges::equal(request_of(pool, 1).payload, answer_of(pool, 1)));
}

TEST(RequestPool, NeighboursAreOnePiece) {
  const auto pool = pool_of(64, Service::crc32c);
  EXPECT_EQ(pool.longest_response(), 4U);
  EXPECT_EQ(pool.frames(3, 5).data(), pool.frames(3, 1).data());
  EXPECT_EQ(pool.frames(3, 5).size(), 5 * pool.shortest_frame());
  EXPECT_EQ(pool.frames(4, 1).data(), pool.frames(3, 1).data() + pool.shortest_frame());
}

TEST(RequestPool, EachSizeIsAClassDrawnByItsWeight) {
  const auto pool = RequestPool::of_sizes({{64, 90}, {4096, 9}, {0, 1}}, {}, Service::reverse);
  ASSERT_EQ(pool.class_count(), 3U);
  EXPECT_EQ(pool.class_at(0), 0U);
  EXPECT_EQ(pool.class_at(0.8999), 0U);
  EXPECT_EQ(pool.class_at(0.9001), 1U);
  EXPECT_EQ(pool.class_at(0.9899), 1U);
  EXPECT_EQ(pool.class_at(0.9901), 2U);
  EXPECT_EQ(pool.class_at(1), 2U);
  const std::uint32_t lengths[] = {64, 4096, 0};
  for (std::uint32_t size_class = 0; size_class < 3; ++size_class) {
    const std::uint32_t last = pool.first_of(size_class) + pool.count_of(size_class) - 1;
    for (const std::uint32_t number : {pool.first_of(size_class), last}) {
      EXPECT_EQ(pool.request_length(number), lengths[size_class]);
      EXPECT_TRUE(
          std::ranges::equal(backwards(request_of(pool, number).payload), answer_of(pool, number)));
    }
  }
  EXPECT_EQ(pool.shortest_frame(), protocol::kFrameHeaderSize);
  EXPECT_EQ(pool.longest_frame(), protocol::kFrameHeaderSize + 4096);
  EXPECT_EQ(pool.longest_response(), 4096U);
}

// So that a command is run 64 times in all; its classes have as many requests as others.
TEST(RequestPool, RequestsOfACommandAreRepeated) {
  const core::Signals signals;
  for (const std::size_t classes : {1U, 2U, 64U}) {
    SizeMix mix;
    for (std::uint32_t i = 0; i < classes; ++i) mix.push_back({16 + i, 1});
    const auto pool = RequestPool::of_sizes(
        mix, {}, Answers(*Verification::parse("command:cat"), Service::reverse, signals));
    const std::size_t different = classes == 64 ? 2 : 64 / classes;
    for (std::uint32_t size_class = 0; size_class < classes; ++size_class) {
      const std::uint32_t first = pool.first_of(size_class);
      std::set<std::vector<std::byte>> seen;
      for (std::uint32_t i = 0; i < pool.count_of(size_class); ++i) {
        const auto payload = request_of(pool, first + i).payload;
        seen.insert(support::copy_of(payload));
        EXPECT_TRUE(std::ranges::equal(
            payload, request_of(pool, first + static_cast<std::uint32_t>(i % different)).payload));
      }
      EXPECT_EQ(seen.size(), different);
      EXPECT_GT(pool.count_of(size_class), different);
    }
  }
}

TEST(RequestPool, AMixThatDoesNotFitIsRefused) {
  SizeMix mix;
  for (std::uint32_t i = 0; i < 20; ++i) mix.push_back({(std::uint32_t{16} << 20) - i, 1});
  EXPECT_EQ(support::thrown_by([&] { RequestPool::of_sizes(mix, {}, Service::echo); }).code(),
            core::ErrorCode::no_memory);
}

RequestPool recorded(const std::vector<std::string_view>& requests) {
  std::vector<std::byte> content;
  for (const auto text : requests) {
    for (const auto id :
         {protocol::MessageId::client_request, protocol::MessageId::client_response}) {
      const auto frame = protocol::make_frame(id, support::bytes_of(text));
      content.insert(content.end(), frame.begin(), frame.end());
    }
  }
  const core::Signals signals;
  return RequestPool::recorded(
      Recording::parse(content, "file"),
      Answers(*Verification::parse("recorded"), Service::reverse, signals));
}

TEST(RequestPool, RecordedRequestsOfOneSizeAreAClassThatHasThemSeveralTimes) {
  const auto pool = recorded({"abc", "def", "ghi"});
  ASSERT_EQ(pool.class_count(), 1U);
  EXPECT_EQ(pool.count_of(0), pool.size());
  EXPECT_EQ(pool.size(), 255U);
  for (std::uint32_t i = 0; i < pool.size(); ++i) {
    const auto text = support::bytes_of(std::string_view("abcdefghi").substr(i % 3 * 3, 3));
    EXPECT_TRUE(std::ranges::equal(request_of(pool, i).payload, text));
    EXPECT_TRUE(std::ranges::equal(answer_of(pool, i), text));
  }
  EXPECT_EQ(pool.frames(0, 255).size(), 255U * 15);
}

TEST(RequestPool, ARecordedRequestIsRepeatedInAtMost64MiB) {
  constexpr std::size_t kFrame = std::size_t{1} << 20;
  EXPECT_EQ(recorded({std::string(kFrame - protocol::kFrameHeaderSize, 'x')}).size(), 64U);
  EXPECT_EQ(recorded({std::string(kFrame - protocol::kFrameHeaderSize + 1, 'x')}).size(), 63U);
}

TEST(RequestPool, AResponseThatBeginsLikeTheLastOneIsAnother) {
  const auto pool = recorded({"abcdef", "abc", "abcdef"});
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::ranges::equal(request_of(pool, i).payload, answer_of(pool, i))) << i;
  }
}

TEST(RequestPool, RecordedRequestsOfSeveralSizesAreDrawnOneByOne) {
  const auto pool = recorded({"abc", "", "abc", "d"});
  ASSERT_EQ(pool.class_count(), 4U);
  EXPECT_EQ(pool.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(pool.count_of(i), 1U);
  EXPECT_EQ(pool.class_at(0.24), 0U);
  EXPECT_EQ(pool.class_at(0.25), 1U);
  EXPECT_EQ(pool.class_at(0.26), 1U);
  EXPECT_EQ(pool.class_at(1), 3U);
  EXPECT_TRUE(std::ranges::equal(request_of(pool, 3).payload, support::bytes_of("d")));
  EXPECT_EQ(answer_of(pool, 0).data(), answer_of(pool, 0).data());
  EXPECT_EQ(pool.longest_response(), 3U);
}

TEST(RequestPool, APayloadIsRepeatedAsNeeded) {
  Payload file;
  file.kind = Payload::Kind::file;
  const auto abc = support::bytes_of("abc");
  file.content.assign(abc.begin(), abc.end());
  const auto repeated = RequestPool::of_sizes({{7, 1}}, file, Service::echo);
  EXPECT_TRUE(std::ranges::equal(request_of(repeated, 1).payload, support::bytes_of("abcabca")));
  const auto constant =
      RequestPool::of_sizes({{3, 1}}, *Payload::parse("constant:120"), Service::echo);
  EXPECT_TRUE(std::ranges::equal(request_of(constant, 0).payload, support::bytes_of("xxx")));
}

}  // namespace
}  // namespace offload::client
