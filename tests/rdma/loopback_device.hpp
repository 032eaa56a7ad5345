#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>

#include "tests/rdma/fake_verbs.hpp"

namespace offload::rdma::test {

/// A device behind the fake one. In each poll it carries out one request of each connected queue
/// pair.
class LoopbackDevice {
 public:
  enum class Fault : std::uint8_t {
    none,
    shuffles,     ///< places plain writes that are posted behind each other in reverse, as allowed
    wrong_byte,   ///< changes a byte of a plain write
    loses_write,  ///< completes a plain write in front of a flag, but does not place it
    fails,        ///< completes everything with an error
    stops,        ///< carries out nothing
  };

  LoopbackDevice() {
    fake().on_poll = [this] { step(); };
  }
  LoopbackDevice& operator=(LoopbackDevice&&) = delete;
  ~LoopbackDevice() { fake().on_poll = {}; }

  Fault fault = Fault::none;

 private:
  /// Plain writes that are placed in reverse.
  struct Batch {
    std::size_t count = 0;
    std::size_t placed = 0;
  };

  void step() {
    if (fault == Fault::stops) return;
    for (FakeQueuePair* const queue : fake().queue_pairs) {
      FakeQueuePair* const peer = peer_of(*queue);
      if (!queue->sends.empty() && peer != nullptr) step(*queue, *peer);
    }
  }
  void step(FakeQueuePair& queue, FakeQueuePair& peer) {
    if (fault == Fault::fails) return fake().finish_send(queue, IBV_WC_RETRY_EXC_ERR);
    if (fault == Fault::shuffles && shuffle(queue)) return;
    if (carry_out(queue, peer)) fake().finish_send(queue);
  }
  /// Places a plain write of those at the front; returns whether there was one.
  bool shuffle(FakeQueuePair& queue) {
    Batch& batch = batches_[&queue];
    if (batch.count == 0) {
      while (batch.count < queue.sends.size() && is_plain(queue.sends[batch.count])) ++batch.count;
    }
    if (batch.count == 0) return false;
    place(queue.sends[batch.count - 1 - batch.placed++]);
    if (batch.placed != batch.count) return true;
    for (; batch.count != 0; --batch.count) fake().finish_send(queue);
    batch = {};
    return true;
  }
  /// Returns false if the first request waits for a receive.
  bool carry_out(FakeQueuePair& queue, FakeQueuePair& peer) {
    const Posted& work = queue.sends.front();
    switch (work.send.opcode) {
      case IBV_WR_RDMA_WRITE: {
        const bool before_flag = queue.sends.size() > 1 && !is_plain(queue.sends[1]);
        if (fault != Fault::loses_write || !before_flag) place(work);
        return true;
      }
      case IBV_WR_ATOMIC_CMP_AND_SWP:
      case IBV_WR_ATOMIC_FETCH_AND_ADD: change_word(work); return true;
      default: return deliver(work, peer);
    }
  }
  static bool deliver(const Posted& work, FakeQueuePair& peer) {
    if (peer.receives.empty()) return false;
    ibv_wc told{};
    told.byte_len = length_of(work);
    if (work.send.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
      std::memcpy(std::bit_cast<void*>(work.send.wr.rdma.remote_addr), data_of(work),
                  told.byte_len);
      told.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
      told.wc_flags = IBV_WC_WITH_IMM;
      told.imm_data = work.send.imm_data;
    } else {
      std::memcpy(std::bit_cast<void*>(peer.receives.front().pieces.at(0).addr), data_of(work),
                  told.byte_len);
    }
    fake().finish_receive(peer, told);
    return true;
  }
  void place(const Posted& work) const {
    auto* const to = std::bit_cast<std::byte*>(work.send.wr.rdma.remote_addr);
    // In one store, because another thread may poll for it.
    if (length_of(work) == 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, data_of(work), sizeof word);
      __atomic_store_n(reinterpret_cast<std::uint64_t*>(to), word, __ATOMIC_RELEASE);
    } else {
      std::memcpy(to, data_of(work), length_of(work));
    }
    if (fault == Fault::wrong_byte) to[length_of(work) / 2] ^= std::byte{1};
  }
  static void change_word(const Posted& work) {
    auto* const word = std::bit_cast<std::uint64_t*>(work.send.wr.atomic.remote_addr);
    const std::uint64_t before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    std::memcpy(std::bit_cast<void*>(work.pieces.at(0).addr), &before, sizeof before);
    const bool adds = work.send.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (!adds && before != work.send.wr.atomic.compare_add) return;
    const std::uint64_t after =
        adds ? before + work.send.wr.atomic.compare_add : work.send.wr.atomic.swap;
    __atomic_store_n(word, after, __ATOMIC_RELEASE);
  }

  static bool is_plain(const Posted& work) { return work.send.opcode == IBV_WR_RDMA_WRITE; }
  static const void* data_of(const Posted& work) {
    return std::bit_cast<const void*>(work.pieces.at(0).addr);
  }
  static std::uint32_t length_of(const Posted& work) { return work.pieces.at(0).length; }
  static FakeQueuePair* peer_of(const FakeQueuePair& queue) {
    for (const ibv_qp_attr& change : queue.modified) {
      if (change.qp_state != IBV_QPS_RTR) continue;
      for (FakeQueuePair* const other : fake().queue_pairs) {
        if (other->native.qp_num == change.dest_qp_num) return other;
      }
    }
    return nullptr;
  }

  std::map<const FakeQueuePair*, Batch> batches_;
};

}  // namespace offload::rdma::test
