#include "core/intrusive_list.hpp"

#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <random>
#include <vector>

namespace offload::core {
namespace {

struct OtherList;
struct Item : ListNode<Item>, ListNode<OtherList> {
  explicit Item(int number) : value(number) {}
  int value;
};
using List = IntrusiveList<Item>;

std::vector<int> values_of(List& list) {
  std::vector<int> values;
  for (Item* item = list.front(); item != nullptr; item = list.next(*item)) {
    values.push_back(item->value);
  }
  return values;
}

class IntrusiveListTest : public testing::Test {
 protected:
  Item one_{1};
  Item two_{2};
  Item three_{3};
  List list_;
};

TEST_F(IntrusiveListTest, IsFirstInFirstOut) {
  EXPECT_TRUE(list_.empty());
  EXPECT_EQ(list_.front(), nullptr);
  EXPECT_EQ(list_.pop_front(), nullptr);
  list_.push_back(one_);
  list_.push_back(two_);
  EXPECT_FALSE(list_.empty());
  EXPECT_EQ(values_of(list_), (std::vector{1, 2}));
  EXPECT_EQ(list_.pop_front(), &one_);
  EXPECT_EQ(list_.pop_front(), &two_);
  EXPECT_TRUE(list_.empty());
}

TEST_F(IntrusiveListTest, AnyElementMayLeave) {
  for (Item* leaving : {&one_, &two_, &three_}) {
    for (Item* item : {&one_, &two_, &three_}) list_.push_back(*item);
    EXPECT_TRUE(List::is_linked(*leaving));
    List::remove(*leaving);
    EXPECT_FALSE(List::is_linked(*leaving));
    List::remove(*leaving);
    EXPECT_EQ(values_of(list_).size(), 2U);
    while (list_.pop_front() != nullptr) continue;
  }
}

TEST_F(IntrusiveListTest, AnElementThatIsDestroyedLeaves) {
  auto four = std::make_unique<Item>(4);
  list_.push_back(one_);
  list_.push_back(*four);
  list_.push_back(two_);
  four.reset();
  EXPECT_EQ(values_of(list_), (std::vector{1, 2}));
}

TEST_F(IntrusiveListTest, AListThatIsDestroyedLetsItsElementsGo) {
  {
    List other;
    other.push_back(one_);
  }
  EXPECT_FALSE(List::is_linked(one_));
  list_.push_back(one_);
  EXPECT_EQ(values_of(list_), std::vector{1});
}

TEST_F(IntrusiveListTest, ListsOfTwoTagsDoNotMix) {
  IntrusiveList<Item, OtherList> other;
  list_.push_back(one_);
  other.push_back(one_);
  List::remove(one_);
  EXPECT_TRUE(list_.empty());
  EXPECT_EQ(other.front(), &one_);
}

TEST_F(IntrusiveListTest, SplicingMovesAllToTheEnd) {
  List other;
  list_.splice_back(other);
  EXPECT_TRUE(list_.empty());
  other.push_back(one_);
  other.push_back(two_);
  list_.splice_back(other);
  EXPECT_TRUE(other.empty());
  other.push_back(three_);
  list_.splice_back(other);
  EXPECT_EQ(values_of(list_), (std::vector{1, 2, 3}));
}

TEST(IntrusiveListProperty, IsAsAStandardList) {
  std::minstd_rand random(1);
  std::vector<std::unique_ptr<Item>> items;
  for (int i = 0; i < 20; ++i) items.push_back(std::make_unique<Item>(i));
  List list;
  std::list<int> model;
  for (int step = 0; step < 10'000; ++step) {
    Item& item = *items[random() % items.size()];
    if (random() % 4 == 0) {
      Item* const first = list.pop_front();
      ASSERT_EQ(first == nullptr, model.empty());
      if (first == nullptr) continue;
      ASSERT_EQ(first->value, model.front());
      model.pop_front();
    } else if (List::is_linked(item)) {
      List::remove(item);
      model.remove(item.value);
    } else {
      list.push_back(item);
      model.push_back(item.value);
    }
    ASSERT_EQ(values_of(list), std::vector<int>(model.begin(), model.end()));
  }
}

}  // namespace
}  // namespace offload::core
