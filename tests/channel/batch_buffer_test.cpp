#include "channel/batch_buffer.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "memory/shared_memory.hpp"
#include "tests/support/bytes.hpp"

namespace offload::channel {
namespace {

using support::Bytes;
using support::random_bytes;

/// The content as docs/reference/wire-protocol.md has it.
Bytes expected_content(const std::vector<Bytes>& messages) {
  Bytes content;
  for (const Bytes& message : messages) {
    content.push_back(static_cast<std::byte>(message.size() & 0xff));
    content.push_back(static_cast<std::byte>(message.size() >> 8));
  }
  for (const Bytes& message : messages) {
    content.insert(content.end(), message.begin(), message.end());
  }
  return content;
}

TEST(BatchBuffer, OneMessageIsItsOwnContent) {
  BatchBuffer batch;
  for (const std::size_t length : {0U, 1U, 15U, 16U, 17U, 1024U}) {
    const auto message = random_bytes(length, 1);
    batch.add(message);
    const Content content = batch.content();
    EXPECT_EQ(content.count, 0U);
    EXPECT_EQ(support::copy_of(content.bytes), message);
    batch.clear();
    EXPECT_TRUE(batch.empty());
  }
}

TEST(BatchBuffer, MessagesOfAllLengthsBehindTheirTable) {
  BatchBuffer batch;
  for (std::size_t most = 0; most <= 80; ++most) {
    std::vector<Bytes> messages;
    for (std::uint32_t i = 0; i < 2 + most % 10; ++i) {
      messages.push_back(random_bytes(i * most % 81, i));
      ASSERT_TRUE(batch.fits(static_cast<std::uint32_t>(messages.back().size()),
                             kernels::kMaxBatchContent));
      batch.add(messages.back());
    }
    const Content content = batch.content();
    EXPECT_EQ(content.count, messages.size());
    EXPECT_EQ(support::copy_of(content.bytes), expected_content(messages));
    batch.clear();
  }
}

// A message may be the last bytes of a mapping.
TEST(BatchBuffer, ReadsNothingBeyondAMessage) {
  const std::size_t page = memory::page_size();
  const memory::Mapping pages =
      memory::map(2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  ASSERT_NE(pages, nullptr);
  ASSERT_EQ(::mprotect(pages.get() + page, page, PROT_NONE), 0);
  for (std::size_t length = 0; length <= 100; ++length) {
    const auto message = random_bytes(length, 1);
    std::byte* const at = pages.get() + page - length;
    std::copy(message.begin(), message.end(), at);
    BatchBuffer batch;
    batch.add({at, length});
    EXPECT_EQ(support::copy_of(batch.content().bytes), message);
  }
}

TEST(BatchBuffer, EndsAtTheMostMessages) {
  BatchBuffer batch;
  for (std::uint32_t i = 0; i < kernels::kMaxBatchCount; ++i) {
    ASSERT_TRUE(batch.fits(1, kernels::kMaxBatchContent)) << i;
    batch.add(random_bytes(1, i));
  }
  EXPECT_FALSE(batch.fits(0, kernels::kMaxBatchContent));
}

// Neither the requests nor the longest responses that there can be are over the limit.
TEST(BatchBuffer, EndsWhereItsResponsesMayEnd) {
  for (const std::uint32_t length : {48U, 49U, 64U, 300U, BatchBuffer::kLongest}) {
    for (const std::uint32_t limit : {kernels::kMaxPacketPayload, kernels::kMaxBatchContent}) {
      BatchBuffer batch;
      std::uint32_t count = 0;
      for (; batch.fits(length, limit); ++count) batch.add(random_bytes(length, count));
      const std::uint32_t frame = kernels::kFrameHeader + length;
      EXPECT_TRUE(count == 1 || count * frame <= limit);
      EXPECT_TRUE(count == kernels::kMaxBatchCount || (count + 1) * frame > limit);
      EXPECT_TRUE(count == 1 || batch.content().bytes.size() <= limit);
    }
  }
}

TEST(BatchBuffer, AResponseMayBeLongerThanItsRequest) {
  constexpr std::uint32_t kSix = 6 * (kernels::kFrameHeader + 48);
  for (const std::uint32_t limit : {kSix - 1, kSix, kernels::kMaxPacketPayload}) {
    BatchBuffer batch;
    std::uint32_t count = 0;
    for (; batch.fits(0, limit); ++count) batch.add({});
    EXPECT_EQ(count, limit < kSix ? 5U : 6U) << limit;
  }
}

TEST(BatchBuffer, AsLongAsTheChannelSays) {
  constexpr std::uint32_t kLongestResponse = 500;
  BatchBuffer batch(kLongestResponse);
  std::uint32_t count = 0;
  for (; batch.fits(8, kernels::kMaxBatchContent); ++count) batch.add(random_bytes(8, count));
  EXPECT_EQ(count, kernels::kMaxBatchContent / (kernels::kFrameHeader + kLongestResponse));
}

}  // namespace
}  // namespace offload::channel
