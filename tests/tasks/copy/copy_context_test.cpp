#include "tasks/copy/copy_context.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/tasks/copy/copy_fixture.hpp"

/// The checks and promises of every copy context, tested with the one that needs no device.
namespace offload::copy {
namespace {

using core::ErrorCode;
using core::Status;
using support::Bytes;
using support::copy_of;
using CopyContextTest = MemoryCopyTest;

TEST_F(CopyContextTest, IsAppendedToWhatIsThere) {
  const auto target = destination(to(0, 20));
  ASSERT_TRUE(target->set_data(3, 5));
  EXPECT_EQ(submit(source(from(0, 10)), target), Status());
  engine_.progress();
  EXPECT_EQ(target->headroom().size(), 3U);
  EXPECT_EQ(target->data().size(), 15U);
  EXPECT_EQ(target->tailroom().size(), 2U);
  EXPECT_EQ(copy_of(to(0, 8)), Bytes(8));
  EXPECT_EQ(copy_of(to(8, 10)), copy_of(from(0, 10)));
  EXPECT_EQ(copy_of(to(18, 2)), Bytes(2));
}

TEST_F(CopyContextTest, OnlyTheDataOfASourceIsCopied) {
  const auto part = source(from(0, 20));
  ASSERT_TRUE(part->set_data(4, 6));
  const auto target = destination(to(0, 20));
  EXPECT_EQ(submit(part, target), Status());
  engine_.progress();
  EXPECT_EQ(copy_of(target->data()), copy_of(from(4, 6)));
}

TEST_F(CopyContextTest, AMissingBufferIsRefused) {
  EXPECT_EQ(submit({}, destination(to(0, 1))), ErrorCode::invalid_value);
  EXPECT_EQ(submit(source(from(0, 1)), {}), ErrorCode::invalid_value);
}

TEST_F(CopyContextTest, AShorterDestinationIsRefused) {
  EXPECT_EQ(submit(from(0, 10), to(0, 9)), ErrorCode::invalid_value);
  const auto used = destination(to(0, 12));
  ASSERT_TRUE(used->append(3));
  EXPECT_EQ(submit(source(from(0, 10)), used), ErrorCode::invalid_value);
  EXPECT_EQ(context_.in_flight(), 0U);
  engine_.progress();
  EXPECT_TRUE(ends_.all.empty());
  EXPECT_EQ(copy_of(to(0, 12)), Bytes(12));
}

TEST_F(CopyContextTest, OverlappingMemoryIsRefused) {
  EXPECT_EQ(submit(to(0, 10), to(0, 10)), ErrorCode::invalid_value);
  EXPECT_EQ(submit(to(0, 10), to(9, 11)), ErrorCode::invalid_value);
  EXPECT_EQ(submit(to(9, 10), to(0, 10)), ErrorCode::invalid_value);
  EXPECT_EQ(submit(to(0, 10), to(10, 10)), Status());
  EXPECT_EQ(submit(to(10, 10), to(0, 10)), Status());
  // The room behind the copied bytes does not matter.
  EXPECT_EQ(submit(to(10, 10), to(0, 20)), Status());
}

TEST_F(CopyContextTest, ARegionForReadingIsNoDestination) {
  memory::MemoryRegion region({"constant", memory::Access::local_read},
                              {memory::borrow_read_only_range(from(0, 100))});
  region.start();
  const auto constant = expect(inventory_.take(region, from(0, 100)));
  EXPECT_EQ(submit(source(to(0, 10)), constant), ErrorCode::not_permitted);
  ASSERT_TRUE(constant->append(100));
  const auto target = destination(to(0, 100));
  EXPECT_EQ(submit(constant, target), Status());
  engine_.progress();
  EXPECT_EQ(copy_of(target->data()), copy_of(from(0, 100)));
  ends_.all[0].first->let_go();
  for (CopyTask& task : pool_->tasks()) task.let_go();
}

TEST_F(CopyContextTest, ADestinationThatChangesMeanwhileIsAnErrorAndNeverAnOverrun) {
  const auto target = destination(to(0, 100));
  EXPECT_EQ(submit(source(from(0, 100)), target), Status());
  ASSERT_TRUE(target->append(50));
  engine_.progress();
  ASSERT_EQ(ends_.all.size(), 1U);
  EXPECT_EQ(ends_.all[0].second, ErrorCode::bad_state);
  EXPECT_EQ(target->data().size(), 50U);
  EXPECT_EQ(copy_of(to(100, 100)), Bytes(100));
}

TEST_F(CopyContextTest, ADestinationThatMovesMeanwhileIsAnErrorThoughThereIsRoom) {
  const auto target = destination(to(0, 100));
  EXPECT_EQ(submit(source(from(0, 50)), target), Status());
  ASSERT_TRUE(target->append(10));
  engine_.progress();
  ASSERT_EQ(ends_.all.size(), 1U);
  EXPECT_EQ(ends_.all[0].second, ErrorCode::bad_state);
  EXPECT_EQ(target->data().size(), 10U);
}

}  // namespace
}  // namespace offload::copy
