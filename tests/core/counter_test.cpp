#include "core/counter.hpp"

#include <gtest/gtest.h>

namespace offload::core {
namespace {

TEST(Counter, AddsAndIsSet) {
  Counter counter;
  EXPECT_EQ(counter.value(), 0U);
  counter.add();
  EXPECT_EQ(counter.value(), 1U);
  counter.add(41);
  EXPECT_EQ(counter.value(), 42U);
  counter.set(7);
  EXPECT_EQ(counter.value(), 7U);
}

}  // namespace
}  // namespace offload::core
