#include "tasks/gpu/cuda_copy_context.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "gpu/cuda_ranges.hpp"
#include "progress/engine.hpp"
#include "progress/task_pool.hpp"
#include "tasks/memory/inventory.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/thrown.hpp"

namespace offload::gpu {
namespace {

using copy::CopyTask;
using core::ErrorCode;
using memory::BufferRef;
using progress::Context;
using support::Bytes;

class CudaCopy : public testing::Test {
 protected:
  static constexpr std::size_t kMost = 4;
  static constexpr std::size_t kBytes = 1U << 20;
  static constexpr std::size_t kPlaces = 2 * (kMost + 1);

  void SetUp() override {
    if (const auto gpus = device::list_gpus(); gpus.devices.empty()) {
      GTEST_SKIP() << "no GPU: " << gpus.why_none;
    }
    on_gpu_.emplace(memory::RegionOptions{"GPU"}, std::vector{make_device_range(kPlaces * kBytes)});
    pinned_.emplace(memory::RegionOptions{"pinned"},
                    std::vector{make_pinned_range(kPlaces * kBytes)});
    on_gpu_->start();
    pinned_->start();
    inventory_.start();
    context_.connect(engine_);
  }
  void TearDown() override {
    if (context_.state() == Context::State::running) context_.stop();
    EXPECT_TRUE(run_until([&] { return context_.state() == Context::State::idle; }));
  }

  template <class Condition>
  bool run_until(Condition condition) {
    return support::eventually(condition, [&] { engine_.progress(); });
  }

  /// A buffer of kBytes without data.
  BufferRef take(memory::MemoryRegion& region, std::size_t place) {
    const auto& range = region.ranges()[0];
    auto taken = inventory_.take(region, {range.address + place * kBytes, kBytes});
    EXPECT_TRUE(taken.buffer);
    return std::move(taken.buffer);
  }
  /// One that is full, of random bytes where the processor may write them.
  BufferRef take_full(memory::MemoryRegion& region, std::size_t place) {
    BufferRef buffer = take(region, place);
    if (&region == &*pinned_) {
      const auto bytes = support::random_bytes(kBytes, static_cast<std::uint32_t>(place));
      std::memcpy(buffer->tailroom().data(), bytes.data(), kBytes);
    }
    EXPECT_TRUE(buffer->append(kBytes));
    return buffer;
  }

  static CopyTask& make(progress::TaskPool<CopyTask>& pool, BufferRef source,
                        BufferRef destination) {
    CopyTask* const task = pool.allocate();
    EXPECT_NE(task, nullptr);
    task->source = std::move(source);
    task->destination = std::move(destination);
    return *task;
  }
  CopyTask& make(BufferRef source, BufferRef destination) {
    return make(pool_, std::move(source), std::move(destination));
  }

  static void note(CopyTask& task, void* ended) {
    static_cast<std::vector<CopyTask*>*>(ended)->push_back(&task);
  }

  std::optional<memory::MemoryRegion> on_gpu_;
  std::optional<memory::MemoryRegion> pinned_;
  memory::BufferInventory inventory_{100};
  progress::Engine engine_;
  CudaCopyContext context_{kMost};
  std::vector<CopyTask*> ended_;
  progress::TaskPool<CopyTask> pool_{
      context_, kMost + 1, {&CudaCopy::note, &CudaCopy::note, &ended_}};
};

TEST_F(CudaCopy, ThereAndBack) {
  context_.start();
  const BufferRef sent = take_full(*pinned_, 0);
  const BufferRef there = take(*on_gpu_, 0);
  const BufferRef back = take(*pinned_, 1);
  ASSERT_TRUE(context_.submit(make(sent, there)).ok());
  EXPECT_TRUE(ended_.empty()) << "before a turn of the engine";
  ASSERT_TRUE(run_until([&] { return ended_.size() == 1; }));
  EXPECT_EQ(there->data().size(), kBytes);
  ASSERT_TRUE(context_.submit(make(there, back)).ok());
  ASSERT_TRUE(run_until([&] { return ended_.size() == 2; }));
  for (const CopyTask* task : ended_) EXPECT_TRUE(task->status().ok());
  EXPECT_EQ(support::copy_of(back->data()), support::copy_of(sent->data()));
}

TEST_F(CudaCopy, AListIsGathered) {
  context_.start();
  const BufferRef first = take_full(*pinned_, 0);
  BufferRef second = take_full(*pinned_, 1);
  ASSERT_TRUE(first->trim(kBytes - 10));
  ASSERT_TRUE(second->consume_front(kBytes - 7));
  Bytes expected = support::copy_of(first->data());
  expected.insert(expected.end(), second->data().begin(), second->data().end());
  ASSERT_TRUE(first->append_chain(second));
  const BufferRef target = take(*pinned_, 2);
  ASSERT_TRUE(context_.submit(make(first, target)).ok());
  ASSERT_TRUE(run_until([&] { return ended_.size() == 1; }));
  EXPECT_EQ(support::copy_of(target->data()), expected);
}

TEST_F(CudaCopy, AListOfMoreThanItTakesIsRefused) {
  context_.start();
  const BufferRef list = take(*pinned_, 0);
  while (list->fits(context_.most_elements())) {
    BufferRef slot = take(*pinned_, 0);
    ASSERT_TRUE(list->append_chain(slot));
  }
  EXPECT_EQ(context_.submit(make(list, take(*pinned_, 1))), ErrorCode::not_supported);
}

TEST_F(CudaCopy, OneMoreThanItTakesIsRefused) {
  context_.start();
  std::vector<CopyTask*> tasks;
  for (std::size_t i = 0; i <= kMost; ++i) {
    tasks.push_back(&make(take_full(*pinned_, 2 * i), take(*pinned_, 2 * i + 1)));
  }
  for (std::size_t i = 0; i < kMost; ++i) ASSERT_TRUE(context_.submit(*tasks[i]).ok());
  EXPECT_EQ(context_.submit(*tasks[kMost]), ErrorCode::full);
  ASSERT_TRUE(run_until([&] { return ended_.size() == kMost; }));
  EXPECT_TRUE(context_.submit(*tasks[kMost]).ok());
  EXPECT_TRUE(run_until([&] { return ended_.size() == kMost + 1; }));
}

TEST_F(CudaCopy, ADestinationThatIsShorterIsRefused) {
  context_.start();
  const BufferRef target = take(*pinned_, 1);
  ASSERT_TRUE(target->append(1));
  EXPECT_EQ(context_.submit(make(take_full(*pinned_, 0), target)), ErrorCode::invalid_value);
}

TEST_F(CudaCopy, APoolThatEndsWaitsForTheEngine) {
  CudaCopyContext context(kMost);
  context.connect(engine_);
  const BufferRef source = take_full(*pinned_, 0);
  const BufferRef back = take(*pinned_, 1);
  std::vector<CopyTask*> ended;
  {
    progress::TaskPool<CopyTask> pool(context, 1, {&CudaCopy::note, &CudaCopy::note, &ended});
    context.start();
    ASSERT_TRUE(context.submit(make(pool, source, back)).ok());
  }
  EXPECT_EQ(ended.size(), 1U);
  EXPECT_EQ(context.state(), Context::State::idle);
  EXPECT_EQ(back->dataroom().back(), source->dataroom().back()) << "the copy was not over";
}

TEST_F(CudaCopy, StopWaitsForTheEngineAndEndsTheTasks) {
  context_.start();
  CopyTask& task = make(take_full(*pinned_, 0), take(*pinned_, 1));
  ASSERT_TRUE(context_.submit(task).ok());
  context_.stop();
  EXPECT_EQ(context_.state(), Context::State::stopping);
  ASSERT_TRUE(run_until([&] { return context_.state() == Context::State::idle; }));
  ASSERT_EQ(ended_, std::vector{&task});
  EXPECT_EQ(task.status(), ErrorCode::shutdown);
  context_.start();
  EXPECT_NE(context_.native_stream(), nullptr);
}

TEST_F(CudaCopy, CopiesOnAStreamOfTheCallersOwn) {
  const CudaStream stream;
  CudaCopyContext context(1, stream);
  context.connect(engine_);
  progress::TaskPool<CopyTask> pool(context, 1, {&CudaCopy::note, &CudaCopy::note, &ended_});
  for (int life = 1; life <= 2; ++life) {
    context.start();
    EXPECT_EQ(context.native_stream(), stream.get());
    CopyTask& task = make(pool, take_full(*pinned_, 0), take(*pinned_, 1));
    ASSERT_TRUE(context.submit(task).ok());
    ASSERT_TRUE(run_until([&] { return static_cast<int>(ended_.size()) == life; }));
    EXPECT_TRUE(task.status().ok());
    EXPECT_TRUE(pool.release(task).ok());
    context.stop();
    EXPECT_EQ(context.native_stream(), nullptr);
  }
  EXPECT_EQ(cudaStreamQuery(stream.get()), cudaSuccess) << "it is the caller's still";
}

TEST(CudaCopyContext, WithoutCopiesInFlightThereIsNone) {
  EXPECT_EQ(support::thrown_by([] { CudaCopyContext context(0); }).code(),
            ErrorCode::invalid_value);
  EXPECT_EQ(support::thrown_by([] {
              CudaCopyContext context(0, CudaStreamRef(cudaStreamLegacy));
            }).code(),
            ErrorCode::invalid_value);
}

}  // namespace
}  // namespace offload::gpu
