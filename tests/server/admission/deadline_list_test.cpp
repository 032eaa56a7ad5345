#include "apps/server/admission/deadline_list.hpp"

#include <gtest/gtest.h>

#include <array>

namespace offload::server {
namespace {

using namespace std::chrono_literals;

struct DeadlineTestTag;
struct DeadlineTestElement : Deadline<DeadlineTestTag> {};

class DeadlineListTest : public testing::Test {
 protected:
  core::RunTime start_ = core::RunTime{} + 1h;
  std::array<DeadlineTestElement, 3> elements_;
};

TEST_F(DeadlineListTest, TheFirstThatWasStartedIsTheFirstDue) {
  DeadlineList<DeadlineTestElement, DeadlineTestTag> list(10s);
  EXPECT_EQ(list.next(), core::RunTime::max());
  list.start(elements_[1], start_);
  list.start(elements_[0], start_ + 1s);
  EXPECT_EQ(list.next(), start_ + 10s);
  EXPECT_EQ(list.pop_due(start_ + 10s - 1ns), nullptr);
  EXPECT_EQ(list.pop_due(start_ + 10s), &elements_[1]);
  EXPECT_EQ(list.pop_due(start_ + 10s), nullptr);
  EXPECT_EQ(list.pop_due(start_ + 1h), &elements_[0]);
  EXPECT_EQ(list.next(), core::RunTime::max());
}

TEST_F(DeadlineListTest, ANewStartBeginsAnew) {
  DeadlineList<DeadlineTestElement, DeadlineTestTag> list(10s);
  list.start(elements_[0], start_);
  list.start(elements_[1], start_ + 1s);
  list.start(elements_[0], start_ + 2s);
  EXPECT_EQ(list.pop_due(start_ + 1h), &elements_[1]);
  EXPECT_EQ(list.next(), start_ + 12s);
}

TEST_F(DeadlineListTest, WhatIsStoppedIsNotDue) {
  DeadlineList<DeadlineTestElement, DeadlineTestTag> list(10s);
  list.stop(elements_[0]);
  list.start(elements_[0], start_);
  EXPECT_TRUE(list.has(elements_[0]));
  list.stop(elements_[0]);
  EXPECT_FALSE(list.has(elements_[0]));
  {
    DeadlineTestElement gone;
    list.start(gone, start_);
  }
  EXPECT_EQ(list.pop_due(start_ + 1h), nullptr);
}

TEST_F(DeadlineListTest, WithoutATimeNothingIsEverDue) {
  DeadlineList<DeadlineTestElement, DeadlineTestTag> list(0s);
  EXPECT_FALSE(list.enabled());
  list.start(elements_[0], start_);
  EXPECT_EQ(list.next(), core::RunTime::max());
}

}  // namespace
}  // namespace offload::server
