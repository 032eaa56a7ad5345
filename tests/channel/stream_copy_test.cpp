#include "channel/stream_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/support/bytes.hpp"

namespace offload::channel {
namespace {

using support::Bytes;
using support::random_bytes;

constexpr std::byte kUntouched{0xa5};

// Around a line, from sources at any alignment: what lies beyond is not touched.
TEST(StreamCopy, CopiesJustSoManyBytes) {
  struct alignas(64) Lines {
    std::byte bytes[512];
  };
  for (const std::size_t length : {0U, 1U, 15U, 16U, 63U, 64U, 65U, 127U, 128U, 200U, 400U}) {
    for (const std::size_t misaligned : {0U, 1U, 7U, 16U}) {
      const Bytes source = random_bytes(length + misaligned, 1);
      // Exactly as large, so that a checker sees a read beyond it.
      const auto from = std::make_unique<std::byte[]>(source.size());
      std::copy(source.begin(), source.end(), from.get());
      Lines lines;
      std::fill(std::begin(lines.bytes), std::end(lines.bytes), kUntouched);
      stream_copy(lines.bytes, from.get() + misaligned, length);
      for (std::size_t i = 0; i < sizeof lines.bytes; ++i) {
        ASSERT_EQ(lines.bytes[i], i < length ? source[i + misaligned] : kUntouched)
            << "byte " << i << " of " << length;
      }
    }
  }
}

TEST(StreamCopy, ADeviceGetsTheSameByAnyWay) {
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{100}, kStreamedLength - 1, kStreamedLength, kStreamedLength + 1,
        3 * kStreamedLength + 65}) {
    const Bytes source = random_bytes(length, 1);
    const auto memory = std::make_unique<std::byte[]>(length + 64 + 16);
    std::byte* const to = memory.get() + 16 - reinterpret_cast<std::uintptr_t>(memory.get()) % 16;
    std::fill_n(to, length + 64, kUntouched);
    copy_for_device(to, source.data(), length);
    EXPECT_TRUE(std::equal(source.begin(), source.end(), to)) << length;
    EXPECT_EQ(std::count(to + length, to + length + 64, kUntouched), 64) << length;
  }
}

}  // namespace
}  // namespace offload::channel
