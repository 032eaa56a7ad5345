#include "gpu/cuda_copy_context.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "device/gpus.hpp"
#include "progress/engine.hpp"
#include "progress/task_pool.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/eventually.hpp"

namespace offload::gpu {
namespace {

using copy::CopyTask;
using core::ErrorCode;
using progress::Context;
using support::Bytes;

class CudaCopy : public testing::Test {
 protected:
  static constexpr std::size_t kMost = 4;
  static constexpr std::size_t kBytes = 1U << 20;

  void SetUp() override {
    if (const auto gpus = device::list_gpus(); gpus.devices.empty()) {
      GTEST_SKIP() << "no GPU: " << gpus.why_none;
    }
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
  CopyTask& make(std::span<const std::byte> source, std::span<std::byte> destination) {
    CopyTask* const task = pool_.allocate();
    EXPECT_NE(task, nullptr);
    task->source = source;
    task->destination = destination;
    return *task;
  }

  progress::Engine engine_;
  CudaCopyContext context_{kMost};
  std::vector<CopyTask*> ended_;
  progress::TaskPool<CopyTask> pool_{
      context_, kMost + 1, {&CudaCopy::note, &CudaCopy::note, &ended_}};

  static void note(CopyTask& task, void* ended) {
    static_cast<std::vector<CopyTask*>*>(ended)->push_back(&task);
  }
};

TEST_F(CudaCopy, ThereAndBack) {
  context_.start();
  const DeviceArray<std::byte> device(kBytes);
  const std::span there(device.get(), kBytes);
  const PinnedArray<std::byte> pinned(kBytes);
  const Bytes sent = support::random_bytes(kBytes, 1);
  std::memcpy(pinned.get(), sent.data(), kBytes);
  const PinnedArray<std::byte> back(kBytes);
  ASSERT_TRUE(context_.submit(make({pinned.get(), kBytes}, there)).ok());
  ASSERT_TRUE(context_.submit(make(there, {back.get(), kBytes})).ok());
  EXPECT_TRUE(ended_.empty()) << "before a turn of the engine";
  ASSERT_TRUE(run_until([&] { return ended_.size() == 2; }));
  for (const CopyTask* task : ended_) EXPECT_TRUE(task->status().ok());
  EXPECT_EQ(support::copy_of({back.get(), kBytes}), sent);
}

TEST_F(CudaCopy, OneMoreThanItTakesIsRefused) {
  context_.start();
  const PinnedArray<std::byte> memory((kMost + 1) * 2 * kBytes);
  std::vector<CopyTask*> tasks;
  for (std::size_t i = 0; i <= kMost; ++i) {
    std::byte* const source = memory.get() + 2 * i * kBytes;
    tasks.push_back(&make({source, kBytes}, {source + kBytes, kBytes}));
  }
  for (std::size_t i = 0; i < kMost; ++i) ASSERT_TRUE(context_.submit(*tasks[i]).ok());
  EXPECT_EQ(context_.submit(*tasks[kMost]), ErrorCode::full);
  ASSERT_TRUE(run_until([&] { return ended_.size() == kMost; }));
  EXPECT_TRUE(context_.submit(*tasks[kMost]).ok());
  EXPECT_TRUE(run_until([&] { return ended_.size() == kMost + 1; }));
}

TEST_F(CudaCopy, ADestinationThatIsShorterIsRefused) {
  context_.start();
  Bytes memory(20);
  const std::span bytes(memory);
  EXPECT_EQ(context_.submit(make(bytes.first(10), bytes.last(9))), ErrorCode::invalid_value);
}

TEST_F(CudaCopy, APoolThatEndsWaitsForTheEngine) {
  CudaCopyContext context(kMost);
  context.connect(engine_);
  const DeviceArray<std::byte> device(kBytes);
  const std::span there(device.get(), kBytes);
  const PinnedArray<std::byte> memory(2 * kBytes);
  std::memset(memory.get(), 1, kBytes);
  std::vector<CopyTask*> ended;
  {
    progress::TaskPool<CopyTask> pool(context, 2, {&CudaCopy::note, &CudaCopy::note, &ended});
    context.start();
    CopyTask& out = *pool.allocate();
    out.source = {memory.get(), kBytes};
    out.destination = there;
    CopyTask& back = *pool.allocate();
    back.source = there;
    back.destination = {memory.get() + kBytes, kBytes};
    ASSERT_TRUE(context.submit(out).ok());
    ASSERT_TRUE(context.submit(back).ok());
  }
  EXPECT_EQ(ended.size(), 2U);
  EXPECT_EQ(context.state(), Context::State::idle);
  EXPECT_EQ(memory.get()[2 * kBytes - 1], std::byte{1}) << "the copies were not over";
}

TEST_F(CudaCopy, StopWaitsForTheEngineAndEndsTheTasks) {
  context_.start();
  const PinnedArray<std::byte> memory(2 * kBytes);
  CopyTask& task = make({memory.get(), kBytes}, {memory.get() + kBytes, kBytes});
  ASSERT_TRUE(context_.submit(task).ok());
  context_.stop();
  EXPECT_EQ(context_.state(), Context::State::stopping);
  ASSERT_TRUE(run_until([&] { return context_.state() == Context::State::idle; }));
  ASSERT_EQ(ended_, std::vector{&task});
  EXPECT_EQ(task.status(), ErrorCode::shutdown);
  context_.start();
  EXPECT_NE(context_.native_stream(), nullptr);
}

}  // namespace
}  // namespace offload::gpu
