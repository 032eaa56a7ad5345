#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tasks/memory/buffer_pool.hpp"
#include "tasks/memory/inventory.hpp"
#include "tests/support/operator_new.hpp"

namespace offload::memory {
namespace {

/// The data path allocates nothing.
TEST(BufferAllocation, ThereIsNoneAfterStart) {
  if (!support::kOwnOperatorNew) GTEST_SKIP() << "a sanitizer allocates";
  std::vector<std::byte> memory(1 << 16);
  MemoryRegion region({"x"}, {borrow_range(memory)});
  region.start();
  BufferInventory inventory(64);
  BufferPool pool(region, 100, 64);
  inventory.start();
  pool.start();
  const std::uint64_t before = support::allocations.count;
  std::size_t taken = 0;
  for (int turn = 0; turn < 1000; ++turn) {
    BufferRef head = pool.take();
    while (auto more = pool.take()) taken += head->append_chain(more) ? 1U : 0U;
    BufferRef other = inventory.take(region, memory).buffer;
    while (auto more = inventory.duplicate(*other).buffer) {
      taken += other->append_chain(more) ? 1U : 0U;
    }
    taken += other->append_chain(head) ? 1U : 0U;
  }
  EXPECT_EQ(support::allocations.count, before);
  EXPECT_EQ(taken, 1000U * (63 + 63 + 1));
}

}  // namespace
}  // namespace offload::memory
