#include "net/source/source_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

namespace offload::net {
namespace {

struct Waiting;
struct Letter : core::ListNode<Waiting> {
  explicit Letter(char is) : letter(is) {}
  char letter;
};

Source numbered(int number) {
  return {static_cast<std::byte>(number)};
}

class SourceQueueTest : public testing::Test {
 protected:
  std::string take_all() {
    std::string letters;
    while (Letter* const letter = queue_.pop_front()) letters += letter->letter;
    return letters;
  }
  std::array<Letter, 6> letters_{Letter('a'), Letter('b'), Letter('c'),
                                 Letter('d'), Letter('e'), Letter('f')};
  SourceQueue<Letter, Waiting> queue_;
};

TEST_F(SourceQueueTest, OneSourceHasAnOrder) {
  for (Letter& letter : letters_) queue_.push_back(numbered(1), letter);
  EXPECT_EQ(take_all(), "abcdef");
}

TEST_F(SourceQueueTest, SourcesTakeTurns) {
  for (int i = 0; i < 4; ++i) queue_.push_back(numbered(2), letters_[static_cast<std::size_t>(i)]);
  EXPECT_EQ(queue_.pop_front()->letter, 'a');
  queue_.push_back(numbered(3), letters_[4]);
  queue_.push_back(numbered(1), letters_[5]);
  EXPECT_EQ(take_all(), "efbcd");
}

// The first source may add more at any rate.
TEST_F(SourceQueueTest, NobodyWaitsForWhatAnotherSourceAdds) {
  queue_.push_back(numbered(9), letters_[0]);
  queue_.push_back(numbered(1), letters_[1]);
  std::string letters;
  for (int i = 0; i < 4; ++i) {
    Letter* const next = queue_.pop_front();
    letters += next->letter;
    queue_.push_back(numbered(next->letter == 'a' ? 9 : 1), *next);
  }
  EXPECT_EQ(letters, "baba");
}

TEST_F(SourceQueueTest, WhatIsRemovedOrDestroyedHasNoTurn) {
  auto gone = std::make_unique<Letter>('x');
  queue_.push_back(numbered(1), *gone);
  queue_.push_back(numbered(2), letters_[0]);
  queue_.push_back(numbered(3), letters_[1]);
  EXPECT_TRUE(queue_.has(letters_[0]));
  queue_.remove(letters_[0]);
  EXPECT_FALSE(queue_.has(letters_[0]));
  gone.reset();
  EXPECT_EQ(take_all(), "b");
}

}  // namespace
}  // namespace offload::net
