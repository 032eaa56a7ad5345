#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "tests/rdma/fake_verbs.hpp"

namespace offload::rdma::test {

/// The wire between two queue pairs of the fake device, of which one carries out, step by step,
/// what the other posts. As adaptive routing allows it, writes that were posted behind each other
/// are placed in any order, each in two pieces of whole words. An immediate, an atomic operation
/// and a completion have everything before them in memory.
class FakeFabric {
 public:
  FakeFabric(FakeQueuePair& one, FakeQueuePair& other, std::uint32_t seed)
      : ends_{{&one, &other, {}}, {&other, &one, {}}}, random_(seed) {}

  /// One step of either end, if there is work. Returns whether there was.
  bool step() {
    const std::size_t first = random_() % 2;
    return step(ends_[first]) || step(ends_[1 - first]);
  }

 private:
  struct Write {
    std::vector<std::byte> bytes;
    std::byte* to;
    std::size_t cut;
    bool placed[2] = {};
  };
  struct End {
    FakeQueuePair* queue;
    FakeQueuePair* peer;
    std::deque<Write> begun;  ///< of the oldest sends
  };

  static bool writes(const Posted& work) {
    return work.send.opcode == IBV_WR_RDMA_WRITE || work.send.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  }

  bool step(End& end) {
    auto& sends = end.queue->sends;
    if (sends.empty()) return false;
    if (!end.begun.empty() && end.begun.front().placed[0] && end.begun.front().placed[1]) {
      end.begun.pop_front();
      complete(end);
    } else if (end.begun.size() != sends.size() && writes(sends[end.begun.size()]) &&
               (end.begun.empty() || random_() % 2 == 0)) {
      begin(end, sends[end.begun.size()]);
    } else if (!end.begun.empty()) {
      place(end.begun[random_() % end.begun.size()], random_() % 2);
    } else {
      swap(sends.front());
      complete(end);
    }
    return true;
  }
  void begin(End& end, const Posted& write) {
    Write& begun = end.begun.emplace_back();
    begun.bytes = gather(write);
    begun.to = std::bit_cast<std::byte*>(write.send.wr.rdma.remote_addr);
    begun.cut = begun.bytes.size() / 8 == 0 ? 0 : random_() % (begun.bytes.size() / 8) * 8;
  }
  static void place(Write& write, std::size_t piece) {
    const std::size_t from = piece == 0 ? 0 : write.cut;
    const std::size_t to = piece == 0 ? write.cut : write.bytes.size();
    if (!write.placed[piece]) {
      std::copy(write.bytes.data() + from, write.bytes.data() + to, write.to + from);
    }
    write.placed[piece] = true;
  }
  static void swap(const Posted& work) {
    ASSERT_EQ(work.send.opcode, IBV_WR_ATOMIC_CMP_AND_SWP);
    auto* const word = std::bit_cast<std::uint64_t*>(work.send.wr.atomic.remote_addr);
    std::memcpy(std::bit_cast<void*>(work.pieces[0].addr), word, sizeof *word);
    if (*word == work.send.wr.atomic.compare_add) *word = work.send.wr.atomic.swap;
  }
  /// The oldest of its sends.
  static void complete(End& end) {
    const ibv_send_wr& work = end.queue->sends.front().send;
    if (work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
      ASSERT_FALSE(end.peer->receives.empty());
      ibv_wc told{};
      told.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
      told.imm_data = work.imm_data;
      fake().finish_receive(*end.peer, told);
    }
    fake().finish_send(*end.queue);
  }
  static std::vector<std::byte> gather(const Posted& work) {
    std::vector<std::byte> bytes;
    for (const ibv_sge& piece : work.pieces) {
      const auto* const from = std::bit_cast<const std::byte*>(piece.addr);
      bytes.insert(bytes.end(), from, from + piece.length);
    }
    return bytes;
  }

  End ends_[2];
  std::minstd_rand random_;
};

}  // namespace offload::rdma::test
