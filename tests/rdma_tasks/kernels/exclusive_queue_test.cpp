#include "kernels/rdma/exclusive_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/group.hpp"
#include "tests/kernels/rdma/model_card.hpp"

namespace offload::kernels::rdma {
namespace {

TEST(ExclusiveQueue, WhatIsLongerThanTheRingIsInvalidAndOtherwiseWaits) {
  constexpr std::uint32_t kBlocks = 16;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory(test::ModelCard::bytes_for(kBlocks, 1) / sizeof(Line));
  test::ModelCard card;
  ExclusiveQueue queue{card.add(memory.data(), kBlocks, 1).send};
  std::uint64_t position = 99;
  // It would wait for ever.
  EXPECT_EQ(reserve(SingleLane{}, queue, kBlocks + 1, position), WorkResult::invalid);
  EXPECT_EQ(position, 99U);
  EXPECT_EQ(reserve(SingleLane{}, queue, kBlocks - 1, position), WorkResult::done);
  EXPECT_EQ(position, 0U);
  EXPECT_EQ(reserve(SingleLane{}, queue, 2, position), WorkResult::pending);
  EXPECT_EQ(reserve(SingleLane{}, queue, 1, position), WorkResult::done);
  EXPECT_EQ(position, kBlocks - 1);
  EXPECT_EQ(reserve(SingleLane{}, queue, 1, position), WorkResult::pending);
}

}  // namespace
}  // namespace offload::kernels::rdma
