#include "apps/rdma_tasks/pattern.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace offload::rdma_tool {
namespace {

using Bytes = std::vector<std::byte>;

Bytes made(std::size_t length, const PatternKey& key) {
  Bytes bytes(length);
  fill(bytes, key);
  return bytes;
}

TEST(Pattern, IsTheSameForTheSameKey) {
  for (const std::size_t length : {1UL, 2UL, 7UL, 8UL, 9UL, 4096UL, 4099UL}) {
    const PatternKey key{1, 2, true, 3};
    EXPECT_EQ(made(length, key), made(length, key));
    EXPECT_FALSE(find_mismatch(made(length, key), key)) << length;
  }
}

TEST(Pattern, EveryPartOfTheKeyMakesAnother) {
  const std::set<Bytes> all = {made(64, {1, 2, true, 3}), made(64, {2, 2, true, 3}),
                               made(64, {1, 3, true, 3}), made(64, {1, 2, false, 3}),
                               made(64, {1, 2, true, 4}), made(64, {1, 2, true, 258})};
  EXPECT_EQ(all.size(), 6U);
}

TEST(Pattern, TheLastByteChangesAndIsNeverZero) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_NE(last_byte(i), 0);
    EXPECT_NE(last_byte(i), last_byte(i + 1));
    EXPECT_NE(last_byte(i), last_byte(i + 2));
    EXPECT_EQ(made(13, {1, 0, true, i}).back(), std::byte{last_byte(i)});
  }
}

TEST(Pattern, AWrongByteIsFoundWhereverItIs) {
  const PatternKey key{7, 0, false, 5};
  for (std::size_t size = 1; size < 34; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      Bytes bytes = made(size, key);
      const auto expected = std::to_integer<std::uint8_t>(bytes[at]);
      bytes[at] ^= std::byte{0x10};
      const auto mismatch = find_mismatch(bytes, key);
      ASSERT_TRUE(mismatch) << at << " of " << size;
      EXPECT_EQ(mismatch->offset, at);
      EXPECT_EQ(mismatch->expected, expected);
      EXPECT_EQ(mismatch->got, expected ^ 0x10);
    }
  }
}

}  // namespace
}  // namespace offload::rdma_tool
