#include "tasks/digest/digest_context.hpp"

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <algorithm>
#include <optional>

#include "progress/task_pool.hpp"
#include "tasks/memory/inventory.hpp"
#include "tests/support/bytes.hpp"

namespace offload::digest {
namespace {

using core::ErrorCode;
using core::Status;

class DigestTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 4UL << 20;

  DigestTest() {
    const auto bytes = support::random_bytes(kBytes, 5);
    std::copy(bytes.begin(), bytes.end(), memory_.begin());
    region_.start();
    inventory_.start();
  }
  ~DigestTest() override {
    if (context_ && context_->state() == progress::Context::State::running) context_->stop();
  }
  void start(Algorithm algorithm) {
    context_.emplace(algorithm);
    context_->connect(engine_);
    const auto note = [](DigestTask& task, void* all) {
      static_cast<std::vector<Status>*>(all)->push_back(task.status());
    };
    pool_.emplace(*context_, 8, progress::TaskPool<DigestTask>::Callbacks{note, note, &ends_});
    context_->start();
  }
  memory::BufferRef data(std::size_t offset, std::size_t length) {
    return inventory_.take_by_data(region_, std::span(memory_).subspan(offset, length)).buffer;
  }
  DigestTask& submit(memory::BufferRef source) {
    DigestTask& task = *pool_->allocate();
    task.source = std::move(source);
    EXPECT_EQ(context_->submit(task), Status());
    return task;
  }
  void turns(int count) {
    for (int i = 0; i < count; ++i) engine_.progress();
  }

  std::vector<std::byte> memory_{kBytes};
  memory::MemoryRegion region_{{"x"}, {memory::borrow_range(memory_)}};
  memory::BufferInventory inventory_{100};
  progress::Engine engine_;
  std::vector<Status> ends_;
  std::optional<DigestContext> context_;
  std::optional<progress::TaskPool<DigestTask>> pool_;
};

// FIPS 180-4's examples: the digests of "abc" and of nothing.
TEST_F(DigestTest, IsWhatTheStandardSays) {
  const std::string_view text = "abc";
  std::transform(text.begin(), text.end(), memory_.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  start(Algorithm::sha256);
  const DigestTask& abc = submit(data(0, 3));
  auto none = data(0, 1);
  none->reset();
  const DigestTask& nothing = submit(std::move(none));
  turns(2);
  EXPECT_EQ(ends_, (std::vector<Status>{{}, {}}));
  EXPECT_EQ(abc.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(nothing.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  context_->stop();
  pool_.reset();
  context_.reset();
  start(Algorithm::sha1);
  const DigestTask& sha1 = submit(data(0, 3));
  turns(2);
  EXPECT_EQ(sha1.hex(), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(DigestContext::size_of(Algorithm::sha512), 64U);
}

TEST_F(DigestTest, AListIsHashedInItsOrderAndInPieces) {
  start(Algorithm::sha512);
  auto list = data(1'000'001, 3'000'000);
  auto second = data(17, 1);
  auto third = data(0, 999'999);
  ASSERT_TRUE(list->append_chain(second));
  ASSERT_TRUE(list->append_chain(third));
  const DigestTask& task = submit(list);
  turns(2);
  EXPECT_TRUE(ends_.empty());  // 256 KiB a turn
  turns(20);
  ASSERT_EQ(ends_.size(), 1U);
  std::vector<std::byte> whole(memory_.begin() + 1'000'001, memory_.begin() + 4'000'001);
  whole.push_back(memory_[17]);
  whole.insert(whole.end(), memory_.begin(), memory_.begin() + 999'999);
  std::array<unsigned char, SHA512_DIGEST_LENGTH> expected{};
  SHA512(reinterpret_cast<const unsigned char*>(whole.data()), whole.size(), expected.data());
  EXPECT_TRUE(std::ranges::equal(task.digest(), std::as_bytes(std::span(expected))));
}

TEST_F(DigestTest, WhatItCannotHashIsRefused) {
  start(Algorithm::sha256);
  DigestTask& task = *pool_->allocate();
  EXPECT_EQ(context_->submit(task), ErrorCode::invalid_value);
  auto list = data(0, 1);
  for (std::size_t i = 1; i <= DigestContext::kMostElements; ++i) {
    auto more = data(i, 1);
    ASSERT_TRUE(list->append_chain(more));
  }
  task.source = list;
  EXPECT_EQ(context_->submit(task), ErrorCode::not_supported);
  memory::MemoryRegion on_device(
      {"gpu"}, {memory::foreign_range(&task, 1, memory::Location::device, nullptr)});
  on_device.start();
  task.source = inventory_.take_by_data(on_device, {on_device.ranges()[0].address, 1}).buffer;
  EXPECT_EQ(context_->submit(task), ErrorCode::not_supported);
  task.let_go();
}

TEST_F(DigestTest, ASourceThatBecomesShorterIsAnErrorAndNeverReadBeyond) {
  start(Algorithm::sha256);
  const auto source = data(0, 1'000'000);
  submit(source);
  turns(1);
  ASSERT_TRUE(source->trim(999'000));
  turns(3);
  EXPECT_EQ(ends_, std::vector<Status>{ErrorCode::bad_state});
}

TEST_F(DigestTest, AStopInTheMiddleLeavesNothingBehind) {
  start(Algorithm::sha256);
  submit(data(0, 1'000'000));
  turns(1);
  context_->stop();
  EXPECT_EQ(ends_, std::vector<Status>{ErrorCode::shutdown});
  context_->start();
  ends_.clear();
  std::fill_n(memory_.begin(), 3, std::byte{'a'});
  const DigestTask& task = submit(data(0, 3));
  turns(2);
  EXPECT_EQ(task.hex(), "9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0");
}

}  // namespace
}  // namespace offload::digest
