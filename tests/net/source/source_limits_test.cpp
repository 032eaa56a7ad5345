#include "net/source/source_limits.hpp"

#include <gtest/gtest.h>

namespace offload::net {
namespace {

constexpr core::Duration kSecond = std::chrono::seconds(1);

Source source(int number) {
  Source bytes{};
  bytes[0] = static_cast<std::byte>(number);
  bytes[1] = static_cast<std::byte>(number >> 8);
  return bytes;
}

class Limits : public testing::Test {
 protected:
  int take_all(int from, core::RunTime at) {
    int count = 0;
    while (count < 10'000 && limits_.take(source(from), at)) ++count;
    return count;
  }
  SourceLimits limits_;
  core::RunTime now_ = core::RunTime{} + std::chrono::hours(1);
};

TEST_F(Limits, ASourceHasABurstAndThenARate) {
  EXPECT_EQ(take_all(1, now_), static_cast<int>(SourceLimits::kBurst));
  EXPECT_EQ(take_all(1, now_ + kSecond), static_cast<int>(SourceLimits::kRate));
  EXPECT_EQ(take_all(1, now_ + 1000 * kSecond), static_cast<int>(SourceLimits::kBurst));
}

TEST_F(Limits, AnotherSourceHasItsOwn) {
  take_all(1, now_);
  EXPECT_TRUE(limits_.take(source(2), now_));
}

TEST_F(Limits, WhatProvesTheKeyCostsNothing) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(limits_.take(source(1), now_)) << i;
    limits_.give_back(source(1));
  }
}

TEST_F(Limits, AProofGivesOneHandshakeBackAndNoMore) {
  take_all(1, now_);
  limits_.give_back(source(1));
  EXPECT_EQ(take_all(1, now_), 1);
  for (int i = 2; i < 10; ++i) take_all(i, now_);
  limits_.give_back(source(1));
  EXPECT_EQ(take_all(10, now_), 1) << "of all together";
}

TEST_F(Limits, AllTogetherHaveABurstAndARate) {
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += take_all(i, now_);
  EXPECT_EQ(taken, static_cast<int>(SourceLimits::kBurstOfAll));
  taken = 0;
  for (int i = 100; i < 200; ++i) taken += take_all(i, now_ + kSecond / 2);
  EXPECT_EQ(taken, static_cast<int>(SourceLimits::kRateOfAll / 2));
  taken = 0;  // in steps that do not fill the burst
  for (int step = 1; step <= 10; ++step) {
    for (int i = 0; i < 100; ++i) taken += take_all(i, now_ + kSecond / 2 + step * kSecond / 2);
  }
  EXPECT_EQ(taken, static_cast<int>(SourceLimits::kRateOfAll * 5));
}

TEST_F(Limits, ASourceIsForgottenOnceItHasItsBurstAgain) {
  take_all(1, now_);
  limits_.forget(now_ + kSecond * 19 / 10);
  EXPECT_EQ(limits_.sources(), 1U);
  limits_.forget(now_ + 2 * kSecond);
  EXPECT_EQ(limits_.sources(), 0U);
}

TEST_F(Limits, MoreSourcesThanItKeepsAreForgottenAtOnce) {
  const auto take_and_refill = [&](int number) {
    ASSERT_TRUE(limits_.take(source(number), now_)) << number;
    limits_.give_back(source(-1));  // to all together
  };
  const int most = static_cast<int>(SourceLimits::kMostSources);
  for (int i = 0; i < most; ++i) take_and_refill(i);
  EXPECT_EQ(limits_.sources(), SourceLimits::kMostSources);
  take_and_refill(most);
  EXPECT_EQ(limits_.sources(), 1U);
}

TEST_F(Limits, SourcesAreForgotten) {
  for (int i = 0; i < 100; ++i) limits_.take(source(i), now_);
  EXPECT_EQ(limits_.sources(), 100U);
  limits_.forget(now_ + 10 * kSecond);
  EXPECT_EQ(limits_.sources(), 0U);
  for (int i = 0; i < 20'000; ++i) limits_.take(source(i), now_ + i * kSecond / 100);
  EXPECT_LE(limits_.sources(), SourceLimits::kMostSources);
}

}  // namespace
}  // namespace offload::net
