#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/rdma/model/card_fixture.hpp"

/// Tests of a card that works on copies of the memory of queues and regions.
namespace offload::rdma::model::test {
namespace {

using rdma::Opcode;
using rdma::Posted;

/// Copies, by copying.
class Copies : public Mirror {
 public:
  std::byte* add(void* memory, std::size_t bytes) {
    const auto* const begin = static_cast<std::byte*>(memory);
    auto& copy =
        copies_.emplace_back(Copy{static_cast<std::byte*>(memory), {begin, begin + bytes}});
    return copy.bytes.data();
  }
  void fetch(std::span<const std::byte> part) override {
    std::byte* const original = find(part);
    std::memcpy(const_cast<std::byte*>(part.data()), original, part.size());
  }
  void store(std::span<const std::byte> part) override {
    std::memcpy(find(part), part.data(), part.size());
  }

 private:
  struct Copy {
    std::byte* original;
    std::vector<std::byte> bytes;
  };

  std::byte* find(std::span<const std::byte> part) {
    for (const Copy& copy : copies_) {
      if (part.data() < copy.bytes.data()) continue;
      const auto offset = static_cast<std::size_t>(part.data() - copy.bytes.data());
      if (offset + part.size() <= copy.bytes.size()) return copy.original + offset;
    }
    ADD_FAILURE() << "no copy has these bytes";
    return nullptr;
  }

  std::vector<Copy> copies_;
};

/// Memory of a queue pair, of which the card has a copy: as the owner has it, and as the card does.
class CopiedOwner {
 public:
  static constexpr std::uint32_t kBlocks = 4;
  static constexpr std::uint32_t kReceives = 4;

  CopiedOwner(Card& card, Copies& copies, std::uint32_t number) {
    for (auto* const entries : {&memory_.sent, &memory_.came}) {
      for (auto& cqe : *entries) cqe.words[rdma::kCqeOwner] = rdma::big_endian(rdma::kFreshOwner);
    }
    const std::uint32_t sent = 2 * number;
    const std::uint32_t came = 2 * number + 1;
    send = {{memory_.segments, kBlocks},
            number,
            &memory_.send_record,
            &memory_.doorbell,
            {memory_.sent, kLog2, &memory_.sent_record, sent}};
    receive = {memory_.receives,
               kReceives,
               &memory_.receive_record,
               {memory_.came, kLog2, &memory_.came_record, came}};
    auto* const copy = reinterpret_cast<Memory*>(copies.add(&memory_, sizeof memory_));
    card.add_completions({copy->sent, kLog2, &copy->sent_record, sent},
                         {.checks_overrun = true, .number = sent});
    card.add_completions({copy->came, kLog2, &copy->came_record, came},
                         {.checks_overrun = true, .number = came});
    PairLayout layout;
    layout.number = number;
    layout.sends = {copy->segments, kBlocks};
    layout.send_record = &copy->send_record;
    layout.receives = {reinterpret_cast<const std::byte*>(copy->receives), kReceives, 4, false,
                       &copy->receive_record};
    layout.sent = sent;
    layout.came = came;
    card.add(layout);
  }
  CopiedOwner& operator=(CopiedOwner&&) = delete;

 private:
  static constexpr std::uint32_t kLog2 = 2;
  struct alignas(64) Memory {
    rdma::Segment segments[kBlocks * rdma::kSegmentsPerBlock]{};
    rdma::Cqe sent[1U << kLog2]{};
    rdma::Cqe came[1U << kLog2]{};
    rdma::Segment receives[kReceives]{};
    std::uint64_t doorbell = 0;
    std::uint32_t send_record = 0;
    std::uint32_t receive_record = 0;
    std::uint32_t sent_record = 0;
    std::uint32_t came_record = 0;
  };
  static_assert(std::is_trivially_copyable_v<Memory>);
  Memory memory_;

 public:
  rdma::SendQueue send{};
  rdma::SendState posted;
  rdma::ReceiveQueue receive{};
  rdma::ReceiveState received;
};

class MirrorCardTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kOne = 0x50;
  static constexpr std::uint32_t kOther = 0x51;
  static constexpr std::uint32_t kKey = 0x200;
  static constexpr std::uint32_t kBytes = 64;
  static constexpr std::size_t kTo = 1024;
  static constexpr std::size_t kWord = 2048;
  static constexpr int kRounds = 20;  // so that each ring begins again

  MirrorCardTest() {
    card_.set_mirror(&copies_);
    card_.add_memory(kKey, {address(0),
                            {copies_.add(bytes_, sizeof bytes_), sizeof bytes_},
                            {true, true, true},
                            true,
                            0});
    for (const auto& [own, peer] : {std::pair(kOne, kOther), std::pair(kOther, kOne)}) {
      PairChange change;
      change.state = State::sending;
      change.rights = RemoteRights{true, true, true};
      change.peer = peer;
      card_.change(own, change);
    }
  }
  ~MirrorCardTest() override { EXPECT_EQ(card_.fault(), ""); }

  [[nodiscard]] std::uint64_t address(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(bytes_ + offset);
  }
  [[nodiscard]] bool has(std::size_t offset, int value) const {
    return std::count(bytes_ + offset, bytes_ + offset + kBytes, value) == kBytes;
  }
  /// Lets the card carry out an operation, and checks its completion.
  void go(Opcode opcode, std::size_t from, std::size_t to, std::uint32_t bytes = kBytes) {
    const rdma::LocalBuffer buffer{address(from), bytes, kKey};
    rdma::SendWork work;
    work.opcode = opcode;
    work.flags = rdma::kSignaled;
    work.buffers = &buffer;
    work.buffer_count = 1;
    work.remote = {address(to), kKey};
    work.compare_add = 3;
    ASSERT_EQ(rdma::post_send(one_.send, one_.posted, work), Posted::done);
    rdma::publish(one_.send, one_.posted);
    card_.ring(kOne);
    card_.progress();
    rdma::Completion completion{};
    ASSERT_TRUE(rdma::poll_send(one_.send, one_.posted, completion));
    EXPECT_EQ(completion.syndrome, rdma::Syndrome::none);
  }

  Copies copies_;
  Card card_{Reading::as_card};
  alignas(64) unsigned char bytes_[4096]{};
  CopiedOwner one_{card_, copies_, kOne};
  CopiedOwner other_{card_, copies_, kOther};
};

TEST_F(MirrorCardTest, WritesAndReadsAreInTheMemoryItself) {
  for (int round = 0; round < kRounds; ++round) {
    std::memset(bytes_, round, kBytes);
    go(Opcode::rdma_write, 0, kTo);
    EXPECT_TRUE(has(kTo, round));
    std::memset(bytes_ + kTo, round + 1, kBytes);
    go(Opcode::rdma_read, 0, kTo);
    EXPECT_TRUE(has(0, round + 1));
  }
}

TEST_F(MirrorCardTest, AtomicOperationsChangeTheMemoryItself) {
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t before = 10 * round;
    std::memcpy(bytes_ + kWord, &before, sizeof before);
    go(Opcode::fetch_add, 0, kWord, sizeof before);
    std::uint64_t words[2];
    std::memcpy(&words[0], bytes_, sizeof before);
    std::memcpy(&words[1], bytes_ + kWord, sizeof before);
    EXPECT_EQ(words[0], before);
    EXPECT_EQ(words[1], before + 3);
  }
}

TEST_F(MirrorCardTest, MessagesComeIntoTheMemoryItself) {
  for (int round = 0; round < kRounds; ++round) {
    const rdma::LocalBuffer buffer{address(kTo), kBytes, kKey};
    ASSERT_EQ(rdma::post_receive(other_.receive, other_.received, buffer), Posted::done);
    rdma::publish(other_.receive, other_.received);
    std::memset(bytes_, round + 1, kBytes);
    go(Opcode::send, 0, 0);
    rdma::Completion completion{};
    ASSERT_TRUE(rdma::poll_receive(other_.receive, other_.received, completion));
    EXPECT_EQ(completion.byte_count, kBytes);
    EXPECT_TRUE(has(kTo, round + 1));
  }
}

}  // namespace
}  // namespace offload::rdma::model::test
