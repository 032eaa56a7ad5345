#include "rdma/mlx5/arena.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace offload::rdma::mlx5 {
namespace {

std::size_t rounded_up(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

}  // namespace

std::size_t arena_bytes(const QueueSizes& sizes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // Rings and completions each begin at a page and end at one. The rings' alignment is a 64th of
  // their size, which libmlx5 rounds up to that too.
  const std::size_t all = rounded_up(queue_memory_bytes(sizes), page);
  return all + rounded_up(std::bit_ceil(all) / 32, page) + 4 * page;
}

void* Arena::take(std::size_t size, std::size_t alignment) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data());
  const std::size_t at = rounded_up(begin + used_, std::max(alignment, kQueueAlignment)) - begin;
  const std::size_t whole = rounded_up(size, kQueueAlignment);
  if (whole < size || at > bytes_.size() || whole > bytes_.size() - at) return nullptr;
  used_ = at + whole;
  std::memset(bytes_.data() + at, 0, whole);
  return bytes_.data() + at;
}

bool Arena::has(const void* begin, std::size_t size) const noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  const auto own = reinterpret_cast<std::uintptr_t>(bytes_.data());
  return first >= own && size <= bytes_.size() && first - own <= bytes_.size() - size;
}

}  // namespace offload::rdma::mlx5
