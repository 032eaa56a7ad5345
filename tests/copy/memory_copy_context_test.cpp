#include "copy/memory_copy_context.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "progress/task_pool.hpp"
#include "tests/support/bytes.hpp"

namespace offload::copy {
namespace {

using core::ErrorCode;
using core::Status;
using progress::Context;
using progress::Engine;
using progress::TaskPool;
using support::Bytes;
using support::random_bytes;

constexpr std::size_t kPiece = MemoryCopyContext::kBytesAtOnce;

/// Tasks that have ended, in order.
struct Ends {
  TaskPool<CopyTask>::Callbacks callbacks() {
    const auto note = [](CopyTask& task, void* ends) {
      static_cast<Ends*>(ends)->all.emplace_back(&task, task.status());
    };
    return {note, note, this};
  }
  std::vector<std::pair<CopyTask*, Status>> all;
};

class MemoryCopyTest : public testing::Test {
 protected:
  MemoryCopyTest() {
    context_.connect(engine_);
    pool_.emplace(context_, 200, ends_.callbacks());
    context_.start();
  }
  void TearDown() override {
    if (context_.state() == Context::State::running) context_.stop();
  }

  CopyTask& task(std::span<const std::byte> source, std::span<std::byte> destination) {
    CopyTask* const task = pool_->allocate();
    EXPECT_NE(task, nullptr);
    task->source = source;
    task->destination = destination;
    return *task;
  }
  Status submit(std::span<const std::byte> source, std::span<std::byte> destination) {
    return context_.submit(task(source, destination));
  }

  Engine engine_;
  MemoryCopyContext context_;
  Ends ends_;
  std::optional<TaskPool<CopyTask>> pool_;
};

TEST_F(MemoryCopyTest, CopiesInATurnAndNotBefore) {
  const Bytes source = random_bytes(100, 1);
  Bytes destination(100);
  CopyTask& copy = task(source, destination);
  EXPECT_EQ(context_.submit(copy), Status());
  EXPECT_EQ(destination, Bytes(100));
  EXPECT_TRUE(engine_.progress());
  EXPECT_EQ(destination, source);
  ASSERT_EQ(ends_.all.size(), 1U);
  EXPECT_EQ(ends_.all[0].first, &copy);
  EXPECT_EQ(ends_.all[0].second, Status());
  EXPECT_FALSE(engine_.progress());
}

TEST_F(MemoryCopyTest, ALongerDestinationKeepsItsEnd) {
  const Bytes source = random_bytes(10, 2);
  Bytes destination(12, std::byte{7});
  EXPECT_EQ(submit(source, destination), Status());
  engine_.progress();
  EXPECT_TRUE(std::equal(source.begin(), source.end(), destination.begin()));
  EXPECT_EQ(destination[10], std::byte{7});
  EXPECT_EQ(destination[11], std::byte{7});
}

TEST_F(MemoryCopyTest, NothingCanBeCopied) {
  Bytes destination(1, std::byte{7});
  EXPECT_EQ(submit({}, {}), Status());
  EXPECT_EQ(submit({}, destination), Status());
  EXPECT_EQ(submit(std::span(destination).first(0), destination), Status());
  engine_.progress();
  EXPECT_EQ(ends_.all.size(), 3U);
  EXPECT_EQ(destination[0], std::byte{7});
}

TEST_F(MemoryCopyTest, AShorterDestinationIsRefused) {
  const Bytes source = random_bytes(10, 3);
  Bytes destination(9);
  EXPECT_EQ(submit(source, destination), ErrorCode::invalid_value);
  EXPECT_EQ(submit(source, {}), ErrorCode::invalid_value);
  EXPECT_EQ(context_.in_flight(), 0U);
  engine_.progress();
  EXPECT_TRUE(ends_.all.empty());
  EXPECT_EQ(destination, Bytes(9));
}

TEST_F(MemoryCopyTest, OverlappingMemoryIsRefused) {
  Bytes memory(20);
  const std::span<std::byte> all(memory);
  EXPECT_EQ(submit(all.first(10), all.first(10)), ErrorCode::invalid_value);
  EXPECT_EQ(submit(all.first(10), all.subspan(9)), ErrorCode::invalid_value);
  EXPECT_EQ(submit(all.subspan(9, 10), all.first(10)), ErrorCode::invalid_value);
  EXPECT_EQ(submit(all.first(10), all.subspan(10)), Status());
  EXPECT_EQ(submit(all.subspan(10), all.first(10)), Status());
  // What is behind the copied bytes does not count.
  EXPECT_EQ(submit(all.subspan(10), all), Status());
}

TEST_F(MemoryCopyTest, ALargeCopyGoesInPieces) {
  const Bytes source = random_bytes(2 * kPiece + 1, 4);
  Bytes destination(source.size());
  EXPECT_EQ(submit(source, destination), Status());
  engine_.progress();
  EXPECT_TRUE(std::equal(source.begin(), source.begin() + kPiece, destination.begin()));
  EXPECT_EQ(destination[kPiece], std::byte{0});
  EXPECT_TRUE(engine_.progress());
  EXPECT_TRUE(ends_.all.empty());
  engine_.progress();
  EXPECT_EQ(ends_.all.size(), 1U);
  EXPECT_EQ(destination, source);
}

TEST_F(MemoryCopyTest, ALargeCopyHoldsNobodyElseUp) {
  MemoryCopyContext other("other");
  other.connect(engine_);
  Ends others;
  TaskPool<CopyTask> other_pool(other, 1, others.callbacks());
  other.start();
  const Bytes source(10 * kPiece, std::byte{1});
  Bytes destination(source.size());
  EXPECT_EQ(submit(source, destination), Status());
  Bytes little(1);
  CopyTask& copy = *other_pool.allocate();
  copy.source = std::span(source).first(1);
  copy.destination = little;
  EXPECT_EQ(other.submit(copy), Status());
  engine_.progress();
  EXPECT_EQ(others.all.size(), 1U);
  EXPECT_TRUE(ends_.all.empty());
  other.stop();
}

TEST_F(MemoryCopyTest, SmallCopiesShareATurnUpToItsBounds) {
  const Bytes source = random_bytes(100, 5);
  std::vector<Bytes> destinations(Context::kCompletionsAtOnce + 1, Bytes(100));
  for (Bytes& destination : destinations) EXPECT_EQ(submit(source, destination), Status());
  engine_.progress();
  EXPECT_EQ(ends_.all.size(), Context::kCompletionsAtOnce);
  engine_.progress();
  EXPECT_EQ(ends_.all.size(), destinations.size());
}

TEST_F(MemoryCopyTest, StopFailsWhatIsNotDone) {
  const Bytes source(kPiece + 1, std::byte{1});
  Bytes first(source.size());
  Bytes second(source.size());
  EXPECT_EQ(submit(source, first), Status());
  EXPECT_EQ(submit(source, second), Status());
  engine_.progress();
  context_.stop();
  ASSERT_EQ(ends_.all.size(), 2U);
  EXPECT_EQ(ends_.all[0].second, ErrorCode::shutdown);
  EXPECT_EQ(ends_.all[1].second, ErrorCode::shutdown);
  EXPECT_EQ(second, Bytes(source.size()));
  EXPECT_EQ(submit(source, first), ErrorCode::bad_state);
}

TEST_F(MemoryCopyTest, ATaskThatWasFlushedStartsFromItsBeginningAgain) {
  const Bytes source = random_bytes(kPiece + 10, 6);
  Bytes destination(source.size());
  CopyTask& copy = task(source, destination);
  EXPECT_EQ(context_.submit(copy), Status());
  engine_.progress();
  context_.stop();
  context_.start();
  std::fill(destination.begin(), destination.end(), std::byte{0});
  EXPECT_EQ(context_.submit(copy), Status());
  engine_.progress();
  engine_.progress();
  EXPECT_EQ(destination, source);
}

// Copies of any length at any place, each from a part of memory that no other writes.
TEST_F(MemoryCopyTest, RandomCopiesAreExact) {
  std::minstd_rand random(8);
  const Bytes source = random_bytes(3 * kPiece, 9);
  for (int round = 0; round < 5; ++round) {
    std::vector<Bytes> destinations;
    std::vector<std::span<const std::byte>> parts;
    destinations.reserve(10);
    for (int i = 0; i < 10; ++i) {
      const std::size_t from = random() % source.size();
      parts.push_back(std::span(source).subspan(from, random() % (source.size() - from)));
      destinations.emplace_back(parts.back().size());
      ASSERT_EQ(submit(parts.back(), destinations.back()), Status());
    }
    for (int turns = 0; turns < 100 && context_.in_flight() != 0; ++turns) engine_.progress();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_TRUE(std::equal(parts[i].begin(), parts[i].end(), destinations[i].begin()));
      EXPECT_EQ(pool_->release(*ends_.all[i].first), Status());
    }
    ends_.all.clear();
  }
}

}  // namespace
}  // namespace offload::copy
