#include "net/backlog.hpp"

#include <gtest/gtest.h>

#include "tests/support/bytes.hpp"

namespace offload::net {
namespace {

using support::Bytes;
using support::bytes_of;

class BacklogTest : public testing::Test {
 protected:
  /// Removes and returns the rest of the backlog.
  Bytes drain(std::size_t piece) {
    Bytes all;
    while (!backlog_.empty()) {
      const auto bytes = backlog_.bytes().first(std::min(piece, backlog_.bytes().size()));
      all.insert(all.end(), bytes.begin(), bytes.end());
      backlog_.consume(bytes.size());
    }
    return all;
  }

  memory::BlockCache cache_{1024 * 1024};
  Backlog backlog_{cache_};
};

TEST_F(BacklogTest, KeepsWhatWasNotTakenInOrder) {
  EXPECT_TRUE(backlog_.empty());
  EXPECT_TRUE(backlog_.bytes().empty());
  Bytes expected;
  for (std::uint32_t i = 0; i < 300; ++i) {
    const auto piece = support::random_bytes(i * 37 % 3000, i);
    ASSERT_TRUE(backlog_.append(piece));
    expected.insert(expected.end(), piece.begin(), piece.end());
    if (i % 7 == 0 && !backlog_.empty()) {
      const auto front = backlog_.bytes().first(1);
      EXPECT_EQ(front[0], expected.front());
      backlog_.consume(1);
      expected.erase(expected.begin());
    }
  }
  EXPECT_EQ(backlog_.appended() - backlog_.consumed(), expected.size());
  EXPECT_TRUE(drain(777) == expected);
  EXPECT_EQ(backlog_.consumed(), backlog_.appended());
}

TEST_F(BacklogTest, HoldsAboutWhatIsLeft) {
  ASSERT_TRUE(backlog_.append(support::random_bytes(10'000'000, 1)));
  EXPECT_LE(backlog_.held(), 12'500'000U);
  EXPECT_EQ(backlog_.held(), cache_.lent());
  ASSERT_TRUE(backlog_.append(support::random_bytes(3'000'000, 2)));
  while (backlog_.appended() - backlog_.consumed() > 1000) {
    backlog_.consume(std::min<std::size_t>(backlog_.bytes().size(),
                                           backlog_.appended() - backlog_.consumed() - 1000));
  }
  EXPECT_LE(cache_.lent(), 4'000'000U);  // what is sent goes back, block by block
  EXPECT_EQ(backlog_.held(), cache_.lent());
  drain(1000);
  EXPECT_EQ(cache_.lent(), 0U);
  EXPECT_EQ(backlog_.held(), 0U);
}

TEST_F(BacklogTest, ShortPiecesShareBlocks) {
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(backlog_.append(bytes_of("x")));
  EXPECT_LE(backlog_.held(), 4096U);
}

TEST_F(BacklogTest, GivesItsMemoryBackAtItsEnd) {
  {
    Backlog backlog(cache_);
    ASSERT_TRUE(backlog.append(bytes_of("hello")));
    EXPECT_GT(cache_.lent(), 0U);
  }
  EXPECT_EQ(cache_.lent(), 0U);
}

TEST_F(BacklogTest, IsUsedAgainOnceAllIsTaken) {
  ASSERT_TRUE(backlog_.append(bytes_of("hello")));
  drain(2);
  EXPECT_TRUE(backlog_.empty());
  ASSERT_TRUE(backlog_.append(bytes_of("again")));
  EXPECT_EQ(drain(9), support::copy_of(bytes_of("again")));
}

TEST_F(BacklogTest, OfNothingIsNone) {
  EXPECT_TRUE(backlog_.append({}));
  EXPECT_TRUE(backlog_.empty());
}

TEST_F(BacklogTest, CanBeGivenUp) {
  ASSERT_TRUE(backlog_.append(bytes_of("hello")));
  backlog_.consume(2);
  backlog_.clear();
  EXPECT_TRUE(backlog_.empty());
  EXPECT_TRUE(backlog_.bytes().empty());
  EXPECT_EQ(backlog_.held() + cache_.lent(), 0U);
  EXPECT_EQ(backlog_.consumed(), backlog_.appended());
}

}  // namespace
}  // namespace offload::net
