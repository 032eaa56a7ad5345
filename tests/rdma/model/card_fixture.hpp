#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "softcard/card/card.hpp"

namespace offload::rdma::model::test {

namespace rdma = kernels::rdma;

/// The memory of one queue pair, and its owner's positions.
class Owner {
 public:
  Owner(Card& card, std::uint32_t blocks, std::uint32_t receives) : Owner(blocks, receives) {
    set_number(card.add({send, receive}));
  }
  /// Makes a queue pair for raw packets.
  Owner(Card& card, std::uint32_t blocks, std::uint32_t receives, std::uint32_t least_inline)
      : Owner(blocks, receives) {
    set_number(card.add_raw({send, receive}, least_inline));
  }

  /// Makes a queue pair under this number as the program `softcard` does for a process. It is in
  /// the state reset, and the test calls Card::ring().
  struct Process {
    std::uint32_t number;
    bool has_record = true;
    EntryFormat format = EntryFormat::rdma;
    std::uint32_t owner = 0;
    bool receives_own = false;
  };
  Owner(Card& card, Process process, std::uint32_t blocks, std::uint32_t receives)
      : Owner(blocks, receives) {
    set_number(process.number);
    PairLayout layout;
    layout.number = process.number;
    layout.sends = send.ring;
    layout.send_record = send.record;
    layout.receives = {reinterpret_cast<const std::byte*>(receive.ring), receives, 4, false,
                       receive.record};
    layout.sent = send.completions.number;
    layout.came = receive.completions.number;
    layout.has_record = process.has_record;
    layout.format = process.format;
    layout.owner = process.owner;
    layout.receives_own = process.receives_own;
    card.add_completions(send.completions, {.number = layout.sent});
    card.add_completions(receive.completions, {.number = layout.came});
    card.add(layout);
  }

  rdma::Posted post(const rdma::SendWork& work) { return rdma::post_send(send, posted, work); }
  void publish() { rdma::publish(send, posted); }
  rdma::Posted post_receive(const rdma::LocalBuffer& buffer) {
    const auto result = rdma::post_receive(receive, received, buffer);
    rdma::publish(receive, received);
    return result;
  }
  std::optional<rdma::Completion> poll() {
    rdma::Completion completion{};
    if (!rdma::poll_send(send, posted, completion)) return std::nullopt;
    return completion;
  }
  std::optional<rdma::Completion> poll_receive() {
    rdma::Completion completion{};
    if (!rdma::poll_receive(receive, received, completion)) return std::nullopt;
    return completion;
  }

  rdma::SendQueue send{};
  rdma::SendState posted;
  rdma::ReceiveQueue receive{};
  rdma::ReceiveState received;

 private:
  void set_number(std::uint32_t number) {
    send.number = number;
    send.completions.number = Card::completions_of_sends(number);
    receive.completions.number = Card::completions_of_receives(number);
  }
  Owner(std::uint32_t blocks, std::uint32_t receives)
      : segments_(blocks * rdma::kSegmentsPerBlock), receive_ring_(receives) {
    std::uint32_t log2 = 0;
    while (1U << log2 < std::max(blocks, receives)) ++log2;
    for (auto* const completions : {&sent_, &came_}) {
      completions->resize(std::size_t{1} << log2);
      for (auto& cqe : *completions)
        cqe.words[rdma::kCqeOwner] = rdma::big_endian(rdma::kFreshOwner);
    }
    send = {
        {segments_.data(), blocks}, 0, &send_record_, &doorbell_, {sent_.data(), log2, &unused_}};
    receive = {receive_ring_.data(), receives, &receive_record_, {came_.data(), log2, &unused_}};
  }

  std::vector<rdma::Segment> segments_;
  std::vector<rdma::Segment> receive_ring_;
  std::vector<rdma::Cqe> sent_;
  std::vector<rdma::Cqe> came_;
  std::uint32_t send_record_ = 0;
  std::uint32_t receive_record_ = 0;
  std::uint32_t unused_ = 0;
  alignas(8) std::uint64_t doorbell_ = 0;
};

/// Memory that is registered with a card.
class Memory {
 public:
  Memory(Card& card, std::size_t size, RemoteRights rights)
      : words_((size + 7) / 8), size_(size), key_(card.register_memory(bytes(), rights)) {}

  [[nodiscard]] std::span<std::byte> bytes() {
    return std::as_writable_bytes(std::span(words_)).first(size_);
  }
  [[nodiscard]] std::uint64_t& word(std::size_t index) { return words_[index]; }
  [[nodiscard]] std::uint32_t key() const { return key_; }
  [[nodiscard]] std::uint64_t address() const {
    return reinterpret_cast<std::uint64_t>(words_.data());
  }
  [[nodiscard]] rdma::LocalBuffer local(std::uint32_t offset, std::uint32_t length) const {
    return {address() + offset, length, key_};
  }
  [[nodiscard]] rdma::RemotePointer remote(std::uint32_t offset = 0) const {
    return {address() + offset, key_};
  }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_;
  std::uint32_t key_;
};

/// Two connected queue pairs of one card, each with memory that the other may use.
class CardTest : public testing::Test {
 protected:
  CardTest() { card_.connect(one_.send.number, other_.send.number); }
  void TearDown() override { EXPECT_EQ(card_.fault(), expected_fault_); }

  /// Posts, publishes and runs the card.
  void go(const rdma::SendWork& work) {
    ASSERT_EQ(one_.post(work), rdma::Posted::done);
    one_.publish();
    card_.progress();
  }

  static constexpr RemoteRights kAll{true, true, true};
  Card card_;
  Owner one_{card_, 16, 8};
  Owner other_{card_, 16, 8};
  Memory here_{card_, 4096, kAll};
  Memory there_{card_, 4096, kAll};
  std::string expected_fault_;
};

}  // namespace offload::rdma::model::test
