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
  bool relay() noexcept;

 private:
  const std::uint64_t* word_;
  volatile std::uint64_t* card_;
  std::uint64_t rung_ = 0;
};

}  // namespace offload::rdma::mlx5
