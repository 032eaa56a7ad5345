#include "tasks/copy/memory_copy_context.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/tasks/copy/copy_fixture.hpp"

namespace offload::copy {
namespace {

using core::ErrorCode;
using core::Status;
using memory::BufferRef;
using progress::Context;
using progress::TaskPool;
using support::Bytes;
using support::copy_of;

TEST_F(MemoryCopyTest, CopiesInATurnAndNotBefore) {
  const auto target = destination(to(0, 100));
  CopyTask& copy = task(source(from(0, 100)), target);
  EXPECT_EQ(context_.submit(copy), Status());
  EXPECT_EQ(copy_of(to(0, 100)), Bytes(100));
  EXPECT_EQ(target->data().size(), 0U);
  EXPECT_TRUE(engine_.progress());
  EXPECT_EQ(copy_of(target->data()), copy_of(from(0, 100)));
  EXPECT_EQ(target->data().data(), to(0, 100).data());
  ASSERT_EQ(ends_.all.size(), 1U);
  EXPECT_EQ(ends_.all[0].first, &copy);
  EXPECT_EQ(ends_.all[0].second, Status());
  EXPECT_FALSE(engine_.progress());
}

TEST_F(MemoryCopyTest, NothingCanBeCopied) {
  const auto nothing = destination(from(0, 1));  // without data
  EXPECT_EQ(submit(nothing, destination(to(0, 1))), Status());
  const auto full = source(to(1, 1));  // without tailroom
  EXPECT_EQ(submit(nothing, full), Status());
  EXPECT_EQ(submit(nothing, destination(from(0, 1))), Status());
  engine_.progress();
  ASSERT_EQ(ends_.all.size(), 3U);
  for (const auto& [copy, status] : ends_.all) EXPECT_EQ(status, Status());
  EXPECT_EQ(copy_of(to(0, 2)), Bytes(2));
}

TEST_F(MemoryCopyTest, NothingIsTakenBeforeTheStart) {
  context_.stop();
  CopyTask& copy = task(source(from(0, 1)), destination(to(0, 1)));
  EXPECT_EQ(context_.submit(copy), ErrorCode::bad_state);
  EXPECT_EQ(context_.flush(), ErrorCode::bad_state);
  context_.start();
  EXPECT_EQ(context_.submit(copy), Status());
  EXPECT_EQ(context_.submit(copy), ErrorCode::bad_state);
  EXPECT_EQ(pool_->release(copy), ErrorCode::bad_state);
}

TEST_F(MemoryCopyTest, MemoryOfADeviceIsNotReached) {
  memory::MemoryRegion region(
      {"of a GPU"}, {memory::foreign_range(to(0, 100).data(), 100, memory::Location::device, {})});
  region.start();
  const auto there = expect(inventory_.take(region, to(0, 50)));
  const auto data_there = expect(inventory_.take_by_data(region, to(50, 50)));
  EXPECT_EQ(submit(source(from(0, 10)), there), ErrorCode::not_supported);
  EXPECT_EQ(submit(data_there, destination(to(100, 100))), ErrorCode::not_supported);
  auto list = source(from(0, 10));
  BufferRef tail = data_there;
  ASSERT_TRUE(list->append_chain(tail));
  EXPECT_EQ(submit(list, destination(to(100, 100))), ErrorCode::not_supported);
  for (CopyTask& task : pool_->tasks()) task.let_go();
}

TEST_F(MemoryCopyTest, ALargeCopyGoesInPieces) {
  const auto target = destination(to(0, 2 * kPiece + 1));
  EXPECT_EQ(submit(source(from(0, 2 * kPiece + 1)), target), Status());
  engine_.progress();
  EXPECT_TRUE(std::ranges::equal(to(0, kPiece), from(0, kPiece)));
  EXPECT_EQ(to(kPiece, 1)[0], std::byte{0});
  EXPECT_TRUE(engine_.progress());
  EXPECT_TRUE(ends_.all.empty());
  EXPECT_TRUE(target->data().empty());
  engine_.progress();
  EXPECT_EQ(ends_.all.size(), 1U);
  EXPECT_TRUE(std::ranges::equal(target->data(), from(0, 2 * kPiece + 1)));
}

TEST_F(MemoryCopyTest, ALargeCopyHoldsNobodyElseUp) {
  MemoryCopyContext other("other");
  other.connect(engine_);
  Ends others;
  TaskPool<CopyTask> other_pool(other, 1, others.callbacks());
  other.start();
  EXPECT_EQ(submit(from(0, 10 * kPiece), to(0, 10 * kPiece)), Status());
  CopyTask& copy = *other_pool.allocate();
  copy.source = source(from(0, 1));
  copy.destination = destination(to(10 * kPiece, 1));
  EXPECT_EQ(other.submit(copy), Status());
  engine_.progress();
  EXPECT_EQ(others.all.size(), 1U);
  EXPECT_TRUE(ends_.all.empty());
  other.stop();
}

TEST_F(MemoryCopyTest, SmallCopiesShareATurnUpToItsBounds) {
  constexpr std::size_t kTasks = Context::kCompletionsAtOnce + 1;
  for (std::size_t i = 0; i < kTasks; ++i) {
    EXPECT_EQ(submit(from(0, 100), to(i * 100, 100)), Status());
  }
  engine_.progress();
  EXPECT_EQ(ends_.all.size(), Context::kCompletionsAtOnce);
  engine_.progress();
  EXPECT_EQ(ends_.all.size(), kTasks);
}

TEST_F(MemoryCopyTest, StopFailsWhatIsNotDoneAndAppendsNothing) {
  const auto first = destination(to(0, kPiece + 1));
  EXPECT_EQ(submit(source(from(0, kPiece + 1)), first), Status());
  EXPECT_EQ(submit(from(0, kPiece), to(2 * kPiece, kPiece)), Status());
  engine_.progress();
  context_.stop();
  ASSERT_EQ(ends_.all.size(), 2U);
  EXPECT_EQ(ends_.all[0].second, ErrorCode::shutdown);
  EXPECT_EQ(ends_.all[1].second, ErrorCode::shutdown);
  EXPECT_TRUE(first->data().empty());
  EXPECT_EQ(copy_of(to(2 * kPiece, kPiece)), Bytes(kPiece));
  EXPECT_EQ(submit(from(0, 1), to(0, 1)), ErrorCode::bad_state);
}

TEST_F(MemoryCopyTest, ATaskThatWasFlushedStartsFromItsBeginningAgain) {
  const auto target = destination(to(0, kPiece + 10));
  CopyTask& copy = task(source(from(0, kPiece + 10)), target);
  EXPECT_EQ(context_.submit(copy), Status());
  engine_.progress();
  context_.stop();
  context_.start();
  std::ranges::fill(to(0, kPiece + 10), std::byte{0});
  EXPECT_EQ(context_.submit(copy), Status());
  engine_.progress();
  engine_.progress();
  EXPECT_TRUE(std::ranges::equal(target->data(), from(0, kPiece + 10)));
}

TEST_F(MemoryCopyTest, ATaskHoldsItsBuffersUntilItIsReleased) {
  CopyTask& copy = task(source(from(0, 10)), destination(to(0, 10)));
  EXPECT_EQ(context_.submit(copy), Status());
  engine_.progress();
  EXPECT_EQ(inventory_.free_count(), inventory_.count() - 2);
  EXPECT_EQ(pool_->release(copy), Status());
  EXPECT_EQ(inventory_.free_count(), inventory_.count());
}

}  // namespace
}  // namespace offload::copy
