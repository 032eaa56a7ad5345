#include "softcard/card/receives.hpp"

namespace offload::rdma::model {
namespace {

using kernels::rdma::big_endian;
using kernels::rdma::LocalBuffer;
using kernels::rdma::Segment;

/// The key of the segment that ends an entry with fewer buffers than there is room for
/// (MLX5_INVALID_LKEY).
constexpr std::uint32_t kNoMore = 0x100;
/// The length that a 0 stands for, bytes.
constexpr std::uint32_t kLengthOfZero = 1U << 31;

std::uint32_t load(const std::uint32_t& word) {
  return big_endian(__atomic_load_n(&word, __ATOMIC_RELAXED));
}

}  // namespace

std::uint64_t Receive::length() const {
  std::uint64_t sum = 0;
  for (const LocalBuffer& buffer : all()) sum += buffer.length;
  return sum;
}

std::uint32_t Receives::look() noexcept {
  if (has_fault_) return 0;
  // With acquire: what the owner wrote before the record is read after it.
  const auto record =
      static_cast<std::uint16_t>(big_endian(__atomic_load_n(layout_.record, __ATOMIC_ACQUIRE)));
  end_ += static_cast<std::uint16_t>(record - end_);
  if (end_ - taken_ > layout_.count) {
    has_fault_ = true;
    return 0;
  }
  return static_cast<std::uint32_t>(end_ - taken_);
}

const Segment& Receives::segment(std::uint32_t index, std::uint32_t at) const noexcept {
  const std::size_t offset = std::size_t{index} << layout_.shift;
  return reinterpret_cast<const Segment*>(layout_.entries + offset)[at];
}

std::span<const std::byte> Receives::oldest() const noexcept {
  const std::size_t offset = std::size_t{next_index()} << layout_.shift;
  return {layout_.entries + offset, std::size_t{1} << layout_.shift};
}

Receive Receives::take() noexcept {
  const std::uint32_t index = next_index();
  ++taken_;
  Receive receive;
  receive.counter =
      layout_.is_list ? static_cast<std::uint16_t>(index) : static_cast<std::uint16_t>(taken_ - 1);
  // The first segment of an entry of a list: bytes 2 and 3 have the next index.
  if (layout_.is_list) head_ = load(segment(index, 0).words[0]) & (layout_.count - 1);
  const std::uint32_t segments = 1U << (layout_.shift - 4);
  for (std::uint32_t i = layout_.is_list ? 1 : 0; i < segments; ++i) {
    const Segment& from = segment(index, i);
    const std::uint32_t length = load(from.words[0]);
    const std::uint32_t key = load(from.words[1]);
    if (key == kNoMore) break;
    const std::uint64_t address = std::uint64_t{load(from.words[2])} << 32 | load(from.words[3]);
    receive.buffers[receive.buffer_count++] = {address, length != 0 ? length : kLengthOfZero, key};
  }
  return receive;
}

bool Receives::reached_limit() noexcept {
  if (limit_ == 0 || look() >= limit_) return false;
  limit_ = 0;
  return true;
}

}  // namespace offload::rdma::model
