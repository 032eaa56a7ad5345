#include "tasks/memory/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/memory.hpp"

namespace offload::memory {
namespace {

using core::ErrorCode;
using support::thrown_by;

class BufferPoolTest : public testing::Test {
 protected:
  BufferPoolTest() { region_.start(); }

  static std::vector<BufferRef> take_all(BufferPool& pool) {
    std::vector<BufferRef> out;
    while (auto buffer = pool.take()) out.push_back(std::move(buffer));
    return out;
  }

  alignas(256) std::byte memory_[1024]{};
  MemoryRegion region_{{"x"}, {borrow_range(memory_)}};
};

TEST_F(BufferPoolTest, HandsOutEachBufferOnceInOrder) {
  BufferPool pool(region_, 100, 8);
  pool.start();
  EXPECT_EQ(pool.count(), 8U);
  EXPECT_EQ(pool.buffer_size(), 100U);
  const auto out = take_all(pool);
  ASSERT_EQ(out.size(), 8U);
  EXPECT_EQ(pool.free_count(), 0U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(out[i]->dataroom().data(), memory_ + 128 * i);
    EXPECT_EQ(out[i]->dataroom().size(), 100U);
    EXPECT_EQ(&out[i]->region(), &region_);
  }
  EXPECT_FALSE(pool.take());
}

TEST_F(BufferPoolTest, ABufferComesWithoutDataWhateverWasLeft) {
  BufferPool pool(region_, 100, 1);
  pool.start();
  auto buffer = pool.take();
  ASSERT_TRUE(buffer->set_data(10, 20));
  buffer.reset();
  buffer = pool.take();
  EXPECT_EQ(buffer->data().size(), 0U);
  EXPECT_EQ(buffer->tailroom().size(), 100U);
  EXPECT_EQ(buffer->references(), 1U);
}

TEST_F(BufferPoolTest, TheLastThatCameBackIsTheNext) {
  BufferPool pool(region_, 10, 3);
  pool.start();
  auto first = pool.take();
  auto second = pool.take();
  const Buffer* const warm = first.get();
  const Buffer* const warmest = second.get();
  first.reset();
  second.reset();
  const auto next = pool.take();
  const auto after = pool.take();
  EXPECT_EQ(next.get(), warmest);
  EXPECT_EQ(after.get(), warm);
}

TEST_F(BufferPoolTest, BuffersAreAlignedWhereverTheRegionBegins) {
  for (const std::size_t alignment : {1U, 2U, 16U, 64U, 256U}) {
    for (const std::size_t shift : {0U, 1U, 63U, 255U}) {
      MemoryRegion region({"y"}, {borrow_range(std::span(memory_).subspan(shift))});
      region.start();
      BufferPool pool(region, 9, 2, alignment);
      pool.start();
      for (const auto& buffer : take_all(pool)) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->dataroom().data()) % alignment, 0U);
        EXPECT_TRUE(region.find(buffer->dataroom().data(), buffer->dataroom().size()));
      }
    }
  }
}

TEST_F(BufferPoolTest, UsesTheLastByteAndNoneBeyond) {
  for (const std::size_t size : {1U, 63U, 64U, 65U, 127U, 128U, 1000U, 1024U}) {
    const std::size_t stride = (size + 63) / 64 * 64;
    const std::size_t most = (1024 - size) / stride + 1;
    BufferPool pool(region_, size, most);
    pool.start();
    EXPECT_EQ(take_all(pool).size(), most) << size;
    BufferPool one_more(region_, size, most + 1);
    const auto error = thrown_by([&] { one_more.start(); });
    EXPECT_EQ(error.code(), ErrorCode::full) << size;
    EXPECT_NE(std::string(error.what()).find("room for " + std::to_string(most)),
              std::string::npos);
    EXPECT_FALSE(one_more.started());
  }
}

TEST_F(BufferPoolTest, GoesOverAllRangesAndNoBufferOverTwo) {
  const std::span<std::byte> bytes(memory_);
  MemoryRegion region({"y"}, {borrow_range(bytes.first(150)), borrow_range(bytes.subspan(512, 30)),
                              borrow_range(bytes.subspan(150, 100))});
  region.start();
  BufferPool pool(region, 50, 5, 1);
  pool.start();
  const auto out = take_all(pool);
  ASSERT_EQ(out.size(), 5U);
  EXPECT_EQ(out[2]->dataroom().data(), memory_ + 100);
  EXPECT_EQ(out[2]->range(), 0U);
  EXPECT_EQ(out[3]->dataroom().data(), memory_ + 150);
  EXPECT_EQ(out[3]->range(), 2U);
}

TEST_F(BufferPoolTest, MeasuresAreChecked) {
  const auto code = [&](std::size_t size, std::size_t count, std::size_t alignment) {
    return code_of([&] { BufferPool(region_, size, count, alignment); });
  };
  EXPECT_EQ(code(0, 1, 64), ErrorCode::invalid_value);
  EXPECT_EQ(code(1, 0, 64), ErrorCode::invalid_value);
  EXPECT_EQ(code(1, 1, 0), ErrorCode::invalid_value);
  EXPECT_EQ(code(1, 1, 48), ErrorCode::invalid_value);
  EXPECT_EQ(code(kMost, 1, 64), ErrorCode::invalid_value);
  EXPECT_EQ(code(1, kMost, 64), ErrorCode::no_memory);
  BufferPool huge(region_, kMost - 64, 1);
  EXPECT_EQ(code_of([&] { huge.start(); }), ErrorCode::full);
  BufferPool far(region_, 1, 1, std::size_t{1} << 63);
  EXPECT_EQ(code_of([&] { far.start(); }), ErrorCode::full);
}

TEST_F(BufferPoolTest, CallsInTheWrongStateAreRefused) {
  BufferPool pool(region_, 10, 1);
  EXPECT_FALSE(pool.take());
  const auto stopped = thrown_by([&] { pool.stop(); });
  EXPECT_EQ(stopped.code(), ErrorCode::bad_state);
  EXPECT_STREQ(stopped.what(), "buffer pool of memory region 'x' is stopped: cannot stop");
  pool.start();
  const auto started = thrown_by([&] { pool.start(); });
  EXPECT_EQ(started.code(), ErrorCode::bad_state);
  EXPECT_STREQ(started.what(), "buffer pool of memory region 'x' is started: cannot start");
  pool.stop();
  EXPECT_FALSE(pool.take());
  pool.start();
  EXPECT_TRUE(pool.take());
}

TEST_F(BufferPoolTest, NeedsARegionThatIsStarted) {
  region_.stop();
  BufferPool pool(region_, 10, 1);
  const auto error = thrown_by([&] { pool.start(); });
  EXPECT_EQ(error.code(), ErrorCode::bad_state);
  EXPECT_STREQ(error.what(), "memory region 'x' is stopped: cannot have a buffer pool");
}

TEST_F(BufferPoolTest, DoesNotStopWithBuffersOutNorTheRegionBeforeIt) {
  BufferPool pool(region_, 10, 3);
  pool.start();
  auto buffer = pool.take();
  const auto error = thrown_by([&] { pool.stop(); });
  EXPECT_EQ(error.code(), ErrorCode::in_use);
  EXPECT_STREQ(error.what(),
               "buffer pool of memory region 'x' cannot stop: 1 of 3 buffers are in use");
  buffer.reset();
  EXPECT_EQ(code_of([&] { region_.stop(); }), ErrorCode::in_use);
  pool.stop();
  region_.stop();
}

TEST_F(BufferPoolTest, StopsAtItsEnd) {
  {
    BufferPool pool(region_, 10, 1);
    pool.start();
    EXPECT_EQ(code_of([&] { region_.stop(); }), ErrorCode::in_use);
  }
  EXPECT_NO_THROW(region_.stop());
  EXPECT_FALSE(region_.started());
}

TEST_F(BufferPoolTest, ChainsGoBackToTheirPools) {
  BufferPool small(region_, 10, 2);
  BufferPool large(region_, 100, 2);
  small.start();
  large.start();
  auto head = small.take();
  auto tail = large.take();
  ASSERT_TRUE(head->append_chain(tail));
  head.reset();
  EXPECT_EQ(small.free_count(), 2U);
  EXPECT_EQ(large.free_count(), 2U);
}

// As for the inventory, runs in a process whose leaks are not checked.
TEST_F(BufferPoolTest, ThatEndsFirstLeavesItsBuffersToTheirHolders) {
  support::ChildProcess child([&](int) {
    const support::LogCapture log;
    BufferRef kept;
    {
      BufferPool pool(region_, 10, 3);
      pool.start();
      kept = pool.take();
    }
    if (!log.has("error: buffer pool of memory region 'x' ends while 1 of 3 buffers are in "
                 "use")) {
      return 1;
    }
    if (!kept->append(10)) return 2;
    kept.reset();
    return region_.users() == 1 ? 0 : 3;
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace offload::memory
