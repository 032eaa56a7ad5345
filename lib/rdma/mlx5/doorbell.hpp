#pragma once

#include <cstdint>

namespace offload::rdma::mlx5 {

/// Relays a doorbell from a word in memory, which any thread can ring, to the card's register.
/// Threads do not ring the register themselves: its memory is write-combining, so a store needs a
/// special fence to reach the card.
///
/// One thread.
class DoorbellRelay {
 public:
  /// Both outlive it. `word` is 0.
  DoorbellRelay(const std::uint64_t* word, volatile std::uint64_t* card) noexcept
      : word_(word), card_(card) {}

  /// Rings the card if the word was rung since the last call; returns whether. No value comes twice
  /// in a row: it has the position of an entry in 16 bits, and a ring is shorter than that.
  bool relay() noexcept {
    // With acquire: the card sees what the poster wrote before once it sees the store below. Pairs
    // with kernels::rdma::ring_doorbell() and ring_up_to().
    const std::uint64_t value = __atomic_load_n(word_, __ATOMIC_ACQUIRE);
    if (value == rung_) return false;
    rung_ = value;
    flush_stores();
    __atomic_store_n(card_, value, __ATOMIC_RELEASE);  // one store; pairs with EntryReader::look()
    flush_stores();
    return true;
  }

 private:
  /// Stores before it, to memory of any kind, reach the card before those after it, and at once.
  static void flush_stores() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#elif defined(__aarch64__)
    asm volatile("dsb st" ::: "memory");
#else
#error "no barrier for stores to a device on this architecture"
#endif
  }

  const std::uint64_t* word_;
  volatile std::uint64_t* card_;
  std::uint64_t rung_ = 0;
};

}  // namespace offload::rdma::mlx5
