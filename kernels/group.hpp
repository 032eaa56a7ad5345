#pragma once

#include <cstdint>

#include "kernels/platform.hpp"

/// Groups: the threads that work on one message together, as cooperative_groups has them. The 32
/// lanes of a warp on a GPU, a tile of it, or a whole block of threads; one thread on a CPU. Every
/// lane of a group calls its collective members together. lane() is cooperative_groups'
/// thread_rank(), tile(n) its tiled_partition.
namespace offload::kernels {

/// Warps of one block of the persistent kernel; each channel has a multiple of it.
inline constexpr std::uint32_t kWarpsPerBlock = 4;

/// The operation with which combine_xor() combines the values of two lanes.
struct Xor {
  OFFLOAD_HOST_DEVICE constexpr std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    return a ^ b;
  }
};

/// A group of one thread, on a CPU.
struct SingleLane {
  OFFLOAD_HOST_DEVICE static constexpr std::uint32_t lane() { return 0; }
  OFFLOAD_HOST_DEVICE static constexpr std::uint32_t size() { return 1; }
  OFFLOAD_HOST_DEVICE static constexpr bool all(bool predicate) { return predicate; }
  OFFLOAD_HOST_DEVICE static constexpr std::uint32_t from_first(std::uint32_t value) {
    return value;
  }
  template <class Value, class Combine>
  OFFLOAD_HOST_DEVICE static constexpr Value reduce(Value value, Combine) {
    return value;
  }
  OFFLOAD_HOST_DEVICE static constexpr std::uint32_t combine_xor(std::uint32_t value) {
    return value;
  }
  OFFLOAD_HOST_DEVICE static constexpr std::uint32_t exclusive_sum(std::uint32_t) { return 0; }
  template <class Work>
  OFFLOAD_HOST_DEVICE static void by_one_warp(const Work& work) {
    work(SingleLane{});
  }
  OFFLOAD_HOST_DEVICE static constexpr void sync() {}
  OFFLOAD_HOST_DEVICE static constexpr SingleLane tile(std::uint32_t) { return {}; }
};

#if defined(__CUDACC__)

/// A number of consecutive lanes of a warp, a power of two. Tiles of one warp need not be
/// converged.
class WarpTile {
 public:
  __device__ explicit WarpTile(std::uint32_t size)
      : size_(size), mask_((0xffff'ffffU >> (32 - size)) << (threadIdx.x % 32 & ~(size - 1))) {}
  [[nodiscard]] __device__ std::uint32_t lane() const { return threadIdx.x & (size_ - 1); }
  [[nodiscard]] __device__ std::uint32_t size() const { return size_; }
  /// These as Warp's.
  template <class Value>
  [[nodiscard]] __device__ Value from_lane(Value value, std::uint32_t lane) const {
    return __shfl_sync(mask_, value, static_cast<int>(lane), static_cast<int>(size_));
  }
  [[nodiscard]] __device__ std::uint32_t from_first(std::uint32_t value) const {
    return from_lane(value, 0);
  }
  template <class Value, class Combine>
  [[nodiscard]] __device__ Value reduce(Value value, Combine combine) const {
    for (std::uint32_t distance = size_ / 2; distance > 0; distance /= 2) {
      value = combine(value, __shfl_xor_sync(mask_, value, static_cast<int>(distance)));
    }
    return value;
  }
  [[nodiscard]] __device__ std::uint32_t combine_xor(std::uint32_t value) const {
    return reduce(value, Xor{});
  }
  __device__ void sync() const { __syncwarp(mask_); }

 private:
  std::uint32_t size_;
  unsigned mask_;
};

/// The lanes of a converged warp.
struct Warp {
  __device__ static std::uint32_t lane() { return threadIdx.x % 32; }
  __device__ static constexpr std::uint32_t size() { return 32; }
  /// Returns whether the predicate holds in every lane.
  __device__ static bool all(bool predicate) { return __all_sync(kEveryLane, predicate) != 0; }
  /// The value of one lane, in every lane.
  template <class Value>
  __device__ static Value from_lane(Value value, std::uint32_t lane) {
    return __shfl_sync(kEveryLane, value, static_cast<int>(lane));
  }
  __device__ static std::uint32_t from_first(std::uint32_t value) { return from_lane(value, 0); }
  /// All lanes' values, in every lane: `combine`(two values) takes them in any order. `Value`: an
  /// integer or floating-point type of 4 or 8 bytes.
  template <class Value, class Combine>
  __device__ static Value reduce(Value value, Combine combine) {
    for (int distance = 16; distance > 0; distance /= 2) {
      value = combine(value, __shfl_xor_sync(kEveryLane, value, distance));
    }
    return value;
  }
  /// The exclusive or of all lanes' values, in every lane.
  __device__ static std::uint32_t combine_xor(std::uint32_t value) { return reduce(value, Xor{}); }
  /// The sum of the values of the lanes before this one.
  __device__ static std::uint32_t exclusive_sum(std::uint32_t value) {
    std::uint32_t sum = value;
    for (std::uint32_t distance = 1; distance < 32; distance *= 2) {
      const std::uint32_t before = __shfl_up_sync(kEveryLane, sum, distance);
      if (lane() >= distance) sum += before;
    }
    return sum - value;
  }
  /// Has one warp of the group do `work`(its group). The others do not wait.
  template <class Work>
  __device__ static void by_one_warp(const Work& work) {
    work(Warp{});
  }
  /// Waits for the other lanes and orders memory among them.
  __device__ static void sync() { __syncwarp(kEveryLane); }
  /// The lane's tile, one of those of `size` lanes.
  __device__ static WarpTile tile(std::uint32_t size) { return WarpTile(size); }

 private:
  static constexpr unsigned kEveryLane = 0xffff'ffffU;
};

/// The threads of a block of whole warps. They exchange values through shared memory; the first
/// sync of a member keeps a value from being overwritten before all lanes have read it.
struct ThreadBlock {
  __device__ static std::uint32_t lane() { return threadIdx.x; }
  __device__ static std::uint32_t size() { return blockDim.x; }
  __device__ static bool all(bool predicate) { return __syncthreads_and(predicate) != 0; }
  __device__ static std::uint32_t from_first(std::uint32_t value) {
    __shared__ std::uint32_t first;
    sync();
    if (threadIdx.x == 0) first = value;
    sync();
    return first;
  }
  template <class Value, class Combine>
  __device__ static Value reduce(Value value, Combine combine) {
    __shared__ Value of_warp[32];  // a block has no more
    value = Warp::reduce(value, combine);
    sync();
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    sync();
    value = of_warp[0];
    for (std::uint32_t warp = 1; warp < blockDim.x / 32; ++warp) {
      value = combine(value, of_warp[warp]);
    }
    return value;
  }
  __device__ static std::uint32_t combine_xor(std::uint32_t value) { return reduce(value, Xor{}); }
  __device__ static std::uint32_t exclusive_sum(std::uint32_t value) {
    __shared__ std::uint32_t of_warp[32];
    const std::uint32_t before = Warp::exclusive_sum(value);
    sync();
    if (threadIdx.x % 32 == 31) of_warp[threadIdx.x / 32] = before + value;
    sync();
    std::uint32_t sum = before;
    for (std::uint32_t warp = 0; warp < threadIdx.x / 32; ++warp) sum += of_warp[warp];
    return sum;
  }
  template <class Work>
  __device__ static void by_one_warp(const Work& work) {
    if (threadIdx.x < 32) work(Warp{});
  }
  __device__ static void sync() { __syncthreads(); }
  __device__ static WarpTile tile(std::uint32_t size) { return WarpTile(size); }
};

#endif

/// Lane 0's value, in every lane.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint64_t from_first_64(const Group& group, std::uint64_t value) {
  const std::uint64_t high = group.from_first(static_cast<std::uint32_t>(value >> 32));
  return high << 32 | group.from_first(static_cast<std::uint32_t>(value));
}

}  // namespace offload::kernels
