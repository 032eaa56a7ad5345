#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "tests/rdma/model/card_fixture.hpp"

namespace offload::rdma::model::test {
namespace {

class UnorderedCardTest : public CardTest {
 protected:
  static constexpr std::uint32_t kWrites = 4;

  /// Posts writes: word i of the peer gets i + 1, each by a separate write.
  void post_writes(std::uint8_t flags_of_last = 0) {
    for (std::uint32_t i = 0; i < kWrites; ++i) {
      words_[i] = i + 1;
      rdma::SendWork work;
      work.opcode = rdma::Opcode::rdma_write;
      if (i + 1 == kWrites) work.flags = flags_of_last;
      work.remote = there_.remote(8 * i);
      work.inline_data = &words_[i];
      work.inline_length = 8;
      ASSERT_EQ(one_.post(work), rdma::Posted::done);
    }
  }
  [[nodiscard]] std::uint32_t placed() {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < kWrites; ++i) count += there_.word(i) == i + 1 ? 1U : 0U;
    return count;
  }
  /// Publishes, and returns the peer's memory at the time when `done`() became true.
  template <class Done>
  std::uint32_t placed_when(const Done& done) {
    one_.publish();
    for (int turns = 0; turns < 100; ++turns) {
      if (done()) return placed();
      card_.progress();
    }
    return 0;
  }

  std::uint64_t words_[kWrites]{};
};

TEST_F(UnorderedCardTest, WritesComeInAnyOrder) {
  card_.set_unordered(3);
  std::set<std::vector<std::uint32_t>> orders;
  for (int round = 0; round < 200; ++round) {
    post_writes(rdma::kSignaled);
    one_.publish();
    std::vector<std::uint32_t> order;
    while (order.size() != kWrites) {
      ASSERT_TRUE(card_.progress());
      for (std::uint32_t i = 0; i < kWrites; ++i) {
        if (there_.word(i) != 0) order.push_back(i);
        there_.word(i) = 0;
      }
    }
    orders.insert(order);
    ASSERT_TRUE(one_.poll().has_value());
  }
  EXPECT_EQ(orders.size(), 24U);
}

// Neither the first nor the last bytes of a write say that it is there whole.
TEST_F(UnorderedCardTest, EitherPartOfAWriteMayComeFirst) {
  card_.set_unordered(6);
  constexpr std::size_t kWords = 8;
  std::uint64_t words[kWords] = {1, 2, 3, 4, 5, 6, 7, 8};
  int first = 0;
  int last = 0;
  for (int round = 0; round < 200; ++round) {
    rdma::SendWork work;
    work.opcode = rdma::Opcode::rdma_write;
    work.flags = rdma::kSignaled;
    work.remote = there_.remote(0);
    work.inline_data = words;
    work.inline_length = sizeof words;
    ASSERT_EQ(one_.post(work), rdma::Posted::done);
    one_.publish();
    while (there_.word(0) == 0 || there_.word(kWords - 1) == 0) {
      first += there_.word(0) != 0 ? 1 : 0;
      last += there_.word(kWords - 1) != 0 ? 1 : 0;
      ASSERT_TRUE(card_.progress());
    }
    for (int i = 0; !one_.poll(); ++i) {
      ASSERT_LT(i, 1000) << "no completion";
      card_.progress();
    }
    for (std::size_t i = 0; i < kWords; ++i) {
      EXPECT_EQ(there_.word(i), words[i]);
      there_.word(i) = 0;
    }
  }
  EXPECT_GT(first, 0);
  EXPECT_GT(last, 0);
}

TEST_F(UnorderedCardTest, ACompletionIsBehindThem) {
  card_.set_unordered(1);
  post_writes(rdma::kSignaled);
  EXPECT_EQ(placed_when([&] { return one_.poll().has_value(); }), kWrites);
}

TEST_F(UnorderedCardTest, AnAtomicIsBehindThem) {
  card_.set_unordered(2);
  post_writes();
  const rdma::LocalBuffer replaced = here_.local(0, 8);
  rdma::SendWork work;
  work.opcode = rdma::Opcode::compare_swap;
  work.remote = there_.remote(8 * kWrites);
  work.swap = 7;
  work.buffers = &replaced;
  work.buffer_count = 1;
  ASSERT_EQ(one_.post(work), rdma::Posted::done);
  EXPECT_EQ(placed_when([&] { return there_.word(kWrites) == 7; }), kWrites);
}

TEST_F(UnorderedCardTest, AnImmediateAndItsOwnWriteAreBehindThem) {
  card_.set_unordered(4);
  ASSERT_EQ(other_.post_receive({}), rdma::Posted::done);
  post_writes();
  const std::uint64_t word = 9;
  rdma::SendWork work;
  work.opcode = rdma::Opcode::rdma_write_with_imm;
  work.remote = there_.remote(8 * kWrites);
  work.inline_data = &word;
  work.inline_length = sizeof word;
  ASSERT_EQ(one_.post(work), rdma::Posted::done);
  EXPECT_EQ(placed_when([&] { return other_.poll_receive().has_value(); }), kWrites);
  EXPECT_EQ(there_.word(kWrites), word);
}

TEST_F(UnorderedCardTest, AMessageIsBehindThem) {
  card_.set_unordered(5);
  ASSERT_EQ(other_.post_receive({}), rdma::Posted::done);
  post_writes();
  ASSERT_EQ(one_.post({.opcode = rdma::Opcode::send}), rdma::Posted::done);
  EXPECT_EQ(placed_when([&] { return other_.poll_receive().has_value(); }), kWrites);
}

}  // namespace
}  // namespace offload::rdma::model::test
