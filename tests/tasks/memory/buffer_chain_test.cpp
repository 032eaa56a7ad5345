#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "tasks/memory/inventory.hpp"
#include "tests/support/memory.hpp"

/// Lists of buffers: each operation, then random sequences of taking, holding, releasing, linking
/// and cutting against a model that records which reference belongs to which buffer.
namespace offload::memory {
namespace {

class BufferChainTest : public testing::Test {
 protected:
  BufferChainTest() {
    region_.start();
    inventory_.start();
  }

  BufferRef take(std::size_t number) {
    return inventory_.take(region_, std::span(memory_).subspan(number * kSize, kSize)).buffer;
  }

  static constexpr std::size_t kSize = 100;
  std::vector<std::byte> memory_{8 * kSize};
  MemoryRegion region_{{"x"}, {borrow_range(memory_)}};
  BufferInventory inventory_{8};
};

TEST_F(BufferChainTest, AChainIsItsBuffersInOrder) {
  const auto head = take(0);
  auto second = take(1);
  auto third = take(2);
  Buffer* const second_buffer = second.get();
  Buffer* const third_buffer = third.get();
  ASSERT_TRUE(head->append(1) && second->append(20) && third->append(3));
  EXPECT_EQ(head->element_count(), 1U);
  ASSERT_TRUE(head->append_chain(second));
  EXPECT_FALSE(second);
  ASSERT_TRUE(head->append_chain(third));
  EXPECT_EQ(head->next(), second_buffer);
  EXPECT_EQ(second_buffer->next(), third_buffer);
  EXPECT_EQ(third_buffer->next(), nullptr);
  EXPECT_TRUE(head->is_head());
  EXPECT_FALSE(second_buffer->is_head());
  EXPECT_EQ(head->element_count(), 3U);
  EXPECT_EQ(head->total_length(), 24U);
  EXPECT_EQ(second_buffer->total_length(), 23U);
  EXPECT_EQ(second_buffer->references(), 1U);
}

TEST_F(BufferChainTest, AChainFitsWhatTakesAsManyElements) {
  const auto head = take(0);
  EXPECT_FALSE(head->fits(0));
  EXPECT_TRUE(head->fits(1));
  for (std::size_t i = 1; i < 4; ++i) {
    auto more = take(i);
    ASSERT_TRUE(head->append_chain(more));
  }
  EXPECT_FALSE(head->fits(3));
  EXPECT_TRUE(head->fits(4));
  EXPECT_TRUE(head->fits(kMost));
}

TEST_F(BufferChainTest, ChainsOfManyAreJoined) {
  const auto head = take(0);
  auto other = take(1);
  auto last = take(2);
  ASSERT_TRUE(other->append_chain(last));
  ASSERT_TRUE(head->append_chain(other));
  EXPECT_EQ(head->element_count(), 3U);
}

TEST_F(BufferChainTest, WhatIsInAListIsNotLinkedOnceMore) {
  auto head = take(0);
  auto second = take(1);
  auto second_again = second;
  auto other = take(2);
  BufferRef nothing;
  EXPECT_FALSE(head->append_chain(nothing));
  EXPECT_FALSE(head->append_chain(head));
  auto head_again = head;
  EXPECT_FALSE(head->append_chain(head_again));
  ASSERT_TRUE(head->append_chain(second));
  EXPECT_FALSE(head->append_chain(second_again));   // it is in this list
  EXPECT_FALSE(other->append_chain(second_again));  // it is in another's
  EXPECT_FALSE(second_again->append_chain(other));  // to the middle of a list
  EXPECT_FALSE(second_again->append_chain(head));   // it would be a ring
  // What was refused still has its reference.
  EXPECT_TRUE(head_again && second_again && other);
  EXPECT_EQ(head->element_count(), 2U);
}

TEST_F(BufferChainTest, UnlinkCutsTheListInTwo) {
  const auto head = take(0);
  auto second = take(1);
  auto third = take(2);
  const Buffer* const second_buffer = second.get();
  ASSERT_TRUE(head->append_chain(second) && head->append_chain(third));
  const auto rest = head->unlink(*second_buffer);
  ASSERT_EQ(rest.get(), second_buffer);
  EXPECT_TRUE(rest->is_head());
  EXPECT_EQ(rest->references(), 1U);
  EXPECT_EQ(rest->element_count(), 2U);
  EXPECT_EQ(head->element_count(), 1U);
}

TEST_F(BufferChainTest, UnlinkOfWhatDoesNotFollowIsNothing) {
  const auto head = take(0);
  auto second = take(1);
  const auto second_again = second;
  auto third = take(2);
  const Buffer* const third_buffer = third.get();
  const auto stranger = take(3);
  ASSERT_TRUE(head->append_chain(second) && head->append_chain(third));
  EXPECT_FALSE(head->unlink(*head));
  EXPECT_FALSE(head->unlink(*stranger));
  EXPECT_FALSE(second_again->unlink(*third_buffer));  // it heads no list
  EXPECT_EQ(head->element_count(), 3U);
}

TEST_F(BufferChainTest, TheChainGoesWithItsHead) {
  auto head = take(0);
  for (std::size_t i = 1; i < 8; ++i) {
    auto more = take(i);
    ASSERT_TRUE(head->append_chain(more));
  }
  EXPECT_EQ(inventory_.free_count(), 0U);
  EXPECT_EQ(region_.users(), 8U);
  head.reset();
  EXPECT_EQ(inventory_.free_count(), 8U);
  EXPECT_EQ(region_.users(), 0U);
}

TEST_F(BufferChainTest, WhatIsStillHeldOfAChainStays) {
  auto head = take(0);
  auto second = take(1);
  const auto held = second;
  auto third = take(2);
  ASSERT_TRUE(head->append_chain(second) && head->append_chain(third));
  head.reset();
  EXPECT_EQ(inventory_.free_count(), 6U);
  EXPECT_TRUE(held->is_head());
  EXPECT_EQ(held->references(), 1U);
  EXPECT_EQ(held->element_count(), 2U);
}

TEST_F(BufferChainTest, ABufferThatComesBackHasNoTraceOfItsList) {
  auto head = take(0);
  auto second = take(1);
  ASSERT_TRUE(head->append_chain(second) && head->append(5));
  head.reset();
  for (std::size_t i = 0; i < 2; ++i) {
    head = take(i);
    EXPECT_EQ(head->next(), nullptr);
    EXPECT_TRUE(head->is_head());
    EXPECT_EQ(head->total_length(), 0U);
    second = head;
  }
}

// ---- Against a model

constexpr std::size_t kBuffers = 12;

/// A buffer as the model sees it. Indices stand for buffers, kNone for no buffer.
constexpr std::size_t kNone = kBuffers;

struct Node {
  Buffer* buffer = nullptr;  ///< null: free
  std::vector<BufferRef> held;
  std::size_t next = kNone;
  std::size_t former = kNone;
};

class ChainModel {
 public:
  ChainModel() {
    region_.start();
    inventory_.start();
  }

  void step() {
    const std::size_t one = random_() % kBuffers;
    const std::size_t other = random_() % kBuffers;
    switch (random_() % 6) {
      case 0: take(one); break;
      case 1: hold(one); break;
      case 2:
      case 3: let_go(one); break;
      case 4: link(one, other); break;
      default: cut(one, other);
    }
  }

  void expect_agreement() const {
    std::size_t in_use = 0;
    for (const Node& node : nodes_) {
      if (node.buffer == nullptr) continue;
      ++in_use;
      ASSERT_EQ(node.buffer->references(), node.held.size() + (node.former == kNone ? 0 : 1));
      ASSERT_EQ(node.buffer->is_head(), node.former == kNone);
      ASSERT_EQ(node.buffer->next(), node.next == kNone ? nullptr : nodes_[node.next].buffer);
      std::size_t count = 0;
      std::size_t length = 0;
      for (const Node* at = &node;; at = &nodes_[at->next]) {
        ++count;
        length += at->buffer->data().size();
        if (at->next == kNone) break;
      }
      ASSERT_EQ(node.buffer->element_count(), count);
      ASSERT_EQ(node.buffer->total_length(), length);
      ASSERT_TRUE(node.buffer->fits(count));
      ASSERT_FALSE(node.buffer->fits(count - 1));
    }
    ASSERT_EQ(inventory_.free_count(), kBuffers - in_use);
    ASSERT_EQ(region_.users(), in_use);
  }

 private:
  void take(std::size_t at) {
    Node& node = nodes_[at];
    if (node.buffer != nullptr) return;
    auto taken = inventory_.take(region_, std::span(memory_).subspan(at * 10, 10)).buffer;
    ASSERT_TRUE(taken);
    ASSERT_TRUE(taken->append(random_() % 11));
    node.buffer = taken.get();
    node.held.push_back(std::move(taken));
  }

  void hold(std::size_t at) {
    Node& node = nodes_[at];
    if (!node.held.empty()) node.held.push_back(BufferRef(node.held.front()));
  }

  void let_go(std::size_t at) {
    Node& node = nodes_[at];
    if (node.held.empty()) return;
    node.held.pop_back();
    free_from(at);
  }

  /// A buffer that nothing refers to is free, and drops its own reference to the next.
  void free_from(std::size_t at) {
    while (at != kNone && nodes_[at].held.empty() && nodes_[at].former == kNone) {
      const std::size_t next = nodes_[at].next;
      nodes_[at] = {};
      if (next != kNone) nodes_[next].former = kNone;
      at = next;
    }
  }

  void link(std::size_t at, std::size_t tail) {
    if (nodes_[at].buffer == nullptr || nodes_[tail].held.empty()) return;
    const bool possible = nodes_[at].former == kNone && nodes_[tail].former == kNone && at != tail;
    ASSERT_EQ(nodes_[at].buffer->append_chain(nodes_[tail].held.back()), possible);
    if (!possible) return;
    nodes_[tail].held.pop_back();
    std::size_t last = at;
    while (nodes_[last].next != kNone) last = nodes_[last].next;
    nodes_[last].next = tail;
    nodes_[tail].former = last;
  }

  void cut(std::size_t at, std::size_t element) {
    if (nodes_[at].buffer == nullptr || nodes_[element].buffer == nullptr) return;
    bool follows = false;
    for (std::size_t next = nodes_[at].next; next != kNone; next = nodes_[next].next) {
      follows = follows || next == element;
    }
    auto rest = nodes_[at].buffer->unlink(*nodes_[element].buffer);
    ASSERT_EQ(static_cast<bool>(rest), follows && nodes_[at].former == kNone);
    if (!rest) return;
    ASSERT_EQ(rest.get(), nodes_[element].buffer);
    nodes_[nodes_[element].former].next = kNone;
    nodes_[element].former = kNone;
    nodes_[element].held.push_back(std::move(rest));
  }

  std::vector<std::byte> memory_{kBuffers * 10};
  MemoryRegion region_{{"x"}, {borrow_range(memory_)}};
  BufferInventory inventory_{kBuffers};
  std::array<Node, kBuffers> nodes_;  // goes before the inventory
  std::minstd_rand random_{1};
};

TEST(BufferChain, AnySequenceOfOperationsDoesWhatTheModelDoes) {
  ChainModel model;
  for (int round = 0; round < 200'000; ++round) {
    ASSERT_NO_FATAL_FAILURE(model.step()) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(model.expect_agreement()) << "round " << round;
  }
}

}  // namespace
}  // namespace offload::memory
