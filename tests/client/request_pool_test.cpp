#include "apps/client/request_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "protocol/frame.hpp"

namespace offload::client {
namespace {

/// Takes frame `number` apart, as the server would.
protocol::FrameView request_of(const RequestPool& pool, std::uint32_t number) {
  return protocol::parse_frame(pool.frames(number, 1), std::uint32_t{16} << 20);
}

std::vector<std::byte> reversed(std::span<const std::byte> bytes) {
  return {bytes.rbegin(), bytes.rend()};
}

TEST(RequestPool, SameTextEverywhere) {
  const std::string_view text = "hello";
  const std::string_view answer = "hi";
  const auto pool =
      RequestPool::same(std::as_bytes(std::span(text)), std::as_bytes(std::span(answer)));
  EXPECT_EQ(pool.request_frame_size(), 17U);
  EXPECT_EQ(pool.response_length(), 2U);
  for (std::uint32_t number = 0; number < pool.count(); ++number) {
    const auto frame = request_of(pool, number);
    ASSERT_EQ(frame.state, protocol::FrameView::State::complete);
    EXPECT_EQ(frame.id, protocol::MessageId::client_request);
    EXPECT_TRUE(std::ranges::equal(frame.payload, std::as_bytes(std::span(text))));
    EXPECT_TRUE(std::ranges::equal(pool.response(number), std::as_bytes(std::span(answer))));
  }
}

TEST(RequestPool, RandomRequestsDifferAndHaveTheirResponses) {
  for (const std::size_t size : {16U, 17U, 255U, 4096U}) {
    const auto pool = RequestPool::random(size, Service::reverse);
    EXPECT_EQ(pool.count(), 256U);
    std::set<std::vector<std::byte>> seen;
    for (std::uint32_t number = 0; number < pool.count(); ++number) {
      const auto frame = request_of(pool, number);
      ASSERT_EQ(frame.payload.size(), size);
      EXPECT_TRUE(std::ranges::equal(reversed(frame.payload), pool.response(number)));
      seen.insert(reversed(frame.payload));
    }
    EXPECT_EQ(seen.size(), pool.count());
  }
}

TEST(RequestPool, EmptyRequests) {
  const auto pool = RequestPool::random(0, Service::reverse);
  EXPECT_EQ(pool.request_frame_size(), protocol::kFrameHeaderSize);
  EXPECT_TRUE(request_of(pool, 0).payload.empty());
  EXPECT_TRUE(pool.response(pool.count() - 1).empty());
}

TEST(RequestPool, LargestRequestsAreFewButNotOne) {
  constexpr std::size_t kSize = std::size_t{16} << 20;
  const auto pool = RequestPool::random(kSize, Service::echo);
  ASSERT_EQ(pool.count(), 2U);
  EXPECT_FALSE(std::ranges::equal(request_of(pool, 0).payload, request_of(pool, 1).payload));
  EXPECT_TRUE(std::ranges::equal(request_of(pool, 1).payload, pool.response(1)));
}

TEST(RequestPool, NeighboursAreOnePiece) {
  const auto pool = RequestPool::random(64, Service::crc32c);
  EXPECT_EQ(pool.response_length(), 4U);
  EXPECT_EQ(pool.frames(3, 5).data(), pool.frames(3, 1).data());
  EXPECT_EQ(pool.frames(3, 5).size(), 5 * pool.request_frame_size());
  EXPECT_EQ(pool.frames(4, 1).data(), pool.frames(3, 1).data() + pool.request_frame_size());
}

}  // namespace
}  // namespace offload::client
