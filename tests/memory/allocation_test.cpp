#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "memory/buffer_pool.hpp"
#include "memory/inventory.hpp"

/// The data path allocates nothing. A sanitizer has its own operator new: there, nothing is
/// counted.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {
/// Relaxed: only this thread's are of interest, and it is the only one.
std::atomic<std::size_t> allocations{0};
}  // namespace

// What is deleted here comes from the operator below, which a compiler may see through.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace offload::memory {
namespace {

TEST(BufferAllocation, ThereIsNoneAfterStart) {
  std::vector<std::byte> memory(1 << 16);
  MemoryRegion region({"x"}, {borrow_range(memory)});
  region.start();
  BufferInventory inventory(64);
  BufferPool pool(region, 100, 64);
  inventory.start();
  pool.start();
  const std::size_t before = allocations.load(std::memory_order_relaxed);
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
  EXPECT_EQ(allocations.load(std::memory_order_relaxed), before);
  EXPECT_EQ(taken, 1000U * (63 + 63 + 1));
}

}  // namespace
}  // namespace offload::memory
#endif
