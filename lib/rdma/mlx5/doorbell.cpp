#include "rdma/mlx5/doorbell.hpp"

namespace offload::rdma::mlx5 {
namespace {

/// Stores before it, to memory of any kind, reach the card before those after it, and at once.
void flush_stores() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#elif defined(__aarch64__)
  asm volatile("dsb st" ::: "memory");
#else
#error "no barrier for stores to a device on this architecture"
#endif
}

}  // namespace

bool DoorbellRelay::relay() noexcept {
  // With acquire: the card sees what the poster wrote before once it sees the store below. Pairs
  // with kernels::rdma::ring_doorbell() and ring_up_to().
  const std::uint64_t value = __atomic_load_n(word_, __ATOMIC_ACQUIRE);
  if (value == rung_) return false;
  rung_ = value;
  flush_stores();
  *card_ = value;
  flush_stores();
  return true;
}

}  // namespace offload::rdma::mlx5
