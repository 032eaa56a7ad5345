#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "progress/task_pool.hpp"
#include "tasks/copy/memory_copy_context.hpp"
#include "tasks/memory/inventory.hpp"
#include "tests/support/bytes.hpp"

namespace offload::copy {

/// Tasks that have ended, in order.
struct Ends {
  progress::TaskPool<CopyTask>::Callbacks callbacks() {
    const auto note = [](CopyTask& task, void* ends) {
      static_cast<Ends*>(ends)->all.emplace_back(&task, task.status());
    };
    return {note, note, this};
  }
  std::vector<std::pair<CopyTask*, core::Status>> all;
};

/// A running context, and buffers over one region: at first the lower half of its memory is random,
/// the upper half is zero.
class MemoryCopyTest : public testing::Test {
 protected:
  static constexpr std::size_t kPiece = MemoryCopyContext::kBytesAtOnce;
  static constexpr std::size_t kHalf = 16 * kPiece;

  MemoryCopyTest() {
    const auto bytes = support::random_bytes(kHalf, 1);
    std::copy(bytes.begin(), bytes.end(), memory_.begin());
    region_.start();
    inventory_.start();
    context_.connect(engine_);
    pool_.emplace(context_, 200, ends_.callbacks());
    context_.start();
  }
  void TearDown() override {
    if (context_.state() == progress::Context::State::running) context_.stop();
  }

  [[nodiscard]] std::span<std::byte> all() noexcept { return memory_; }
  /// Returns a part of the half that is random.
  [[nodiscard]] std::span<std::byte> from(std::size_t offset, std::size_t length) noexcept {
    return all().first(kHalf).subspan(offset, length);
  }
  /// Returns a part of the half that is zero.
  [[nodiscard]] std::span<std::byte> to(std::size_t offset, std::size_t length) noexcept {
    return all().subspan(kHalf).subspan(offset, length);
  }

  memory::BufferRef source(std::span<std::byte> data) {
    return expect(inventory_.take_by_data(region_, data));
  }
  memory::BufferRef destination(std::span<std::byte> dataroom) {
    return expect(inventory_.take(region_, dataroom));
  }
  static memory::BufferRef expect(memory::Taken taken) {
    EXPECT_TRUE(taken.buffer);
    return std::move(taken.buffer);
  }

  CopyTask& task(memory::BufferRef from, memory::BufferRef to) {
    CopyTask* const task = pool_->allocate();
    EXPECT_NE(task, nullptr);
    task->source = std::move(from);
    task->destination = std::move(to);
    return *task;
  }
  core::Status submit(memory::BufferRef from, memory::BufferRef to) {
    return context_.submit(task(std::move(from), std::move(to)));
  }
  core::Status submit(std::span<std::byte> from, std::span<std::byte> to) {
    return submit(source(from), destination(to));
  }

  std::vector<std::byte> memory_{std::vector<std::byte>(2 * kHalf)};
  memory::MemoryRegion region_{{"copies"}, {memory::borrow_range(memory_)}};
  memory::BufferInventory inventory_{1000};
  progress::Engine engine_;
  MemoryCopyContext context_;
  Ends ends_;
  std::optional<progress::TaskPool<CopyTask>> pool_;
};

}  // namespace offload::copy
