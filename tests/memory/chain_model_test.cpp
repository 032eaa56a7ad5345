#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <random>
#include <vector>

#include "memory/inventory.hpp"

/// Random sequences of taking, holding, letting go, linking and cutting buffers, against a model
/// that writes down who refers to whom.
namespace offload::memory {
namespace {

constexpr std::size_t kBuffers = 12;

/// A buffer as the model sees it. Places in arrays stand for buffers; kNone for nobody.
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

  /// Whoever nobody refers to is free, and refers to nobody any more.
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
  for (int turn = 0; turn < 200'000; ++turn) {
    ASSERT_NO_FATAL_FAILURE(model.step()) << "turn " << turn;
    ASSERT_NO_FATAL_FAILURE(model.expect_agreement()) << "turn " << turn;
  }
}

}  // namespace
}  // namespace offload::memory
