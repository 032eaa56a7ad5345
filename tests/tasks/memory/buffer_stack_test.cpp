#include "tasks/memory/buffer_stack.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/memory.hpp"

namespace offload::memory {
namespace {

/// Puts each buffer back on the stack, and records which one it was.
class StackOwner final : public BufferOwner {
 public:
  explicit StackOwner(std::size_t count) : stack(*this, count) {}

  void give_back(Buffer& buffer) noexcept override {
    given_back.push_back(&buffer);
    stack.take_back(buffer);
  }

  std::vector<Buffer*> given_back;
  BufferStack stack;
};

TEST(BufferStack, LendsEachBufferOnceInOrder) {
  StackOwner owner(3);
  std::vector<BufferRef> out;
  for (std::size_t i = 0; i < 3; ++i) {
    out.push_back(owner.stack.lend());
    EXPECT_EQ(out.back().get(), &owner.stack[i]);
    EXPECT_EQ(out.back()->references(), 1U);
    EXPECT_EQ(owner.stack.out(), i + 1);
    EXPECT_EQ(owner.stack.free_count(), 2 - i);
  }
  EXPECT_FALSE(owner.stack.lend());
  EXPECT_EQ(owner.stack.count(), 3U);
}

TEST(BufferStack, TheOwnerGetsABufferWithItsLastReference) {
  StackOwner owner(2);
  BufferRef first = owner.stack.lend();
  Buffer* const buffer = first.get();
  {
    const BufferRef second = first;
    first.reset();
    EXPECT_TRUE(owner.given_back.empty());
  }
  EXPECT_EQ(owner.given_back, std::vector<Buffer*>{buffer});
  EXPECT_EQ(owner.stack.out(), 0U);
}

TEST(BufferStack, LendsTheLastReturnedFirst) {
  StackOwner owner(3);
  BufferRef first = owner.stack.lend();
  BufferRef second = owner.stack.lend();
  const Buffer* const last = first.get();
  second.reset();
  first.reset();
  EXPECT_EQ(owner.stack.lend().get(), last);
}

TEST(BufferStack, ABufferKeepsItsPlaceAndNotItsList) {
  std::vector<std::byte> memory(100);
  MemoryRegion region({"x"}, {borrow_range(memory)});
  StackOwner owner(2);
  for (std::size_t i = 0; i < 2; ++i) {
    BufferStack::place(owner.stack[i], region, 0, std::span(memory).subspan(50 * i, 50));
  }
  BufferRef head = owner.stack.lend();
  BufferRef tail = owner.stack.lend();
  ASSERT_TRUE(head->append_chain(tail) && head->append(10));
  head.reset();
  EXPECT_EQ(owner.given_back.size(), 2U);
  // The tail came back after its head, so it is lent before it.
  tail = owner.stack.lend();
  head = owner.stack.lend();
  EXPECT_EQ(head->dataroom().data(), memory.data());
  EXPECT_EQ(tail->dataroom().data(), memory.data() + 50);
  EXPECT_EQ(&tail->region(), &region);
  EXPECT_EQ(head->next(), nullptr);
  EXPECT_TRUE(tail->is_head());
}

TEST(BufferStack, ItsNumberIsChecked) {
  EXPECT_EQ(code_of([] { StackOwner(0); }), core::ErrorCode::invalid_value);
  EXPECT_EQ(code_of([] { StackOwner{kMost}; }), core::ErrorCode::no_memory);
  EXPECT_EQ(code_of([] { StackOwner{kMost / sizeof(Buffer) + 2}; }), core::ErrorCode::no_memory);
}

}  // namespace
}  // namespace offload::memory
