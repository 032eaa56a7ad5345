#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/group.hpp"
#include "kernels/serve.hpp"

namespace offload::kernels::test {

template <class Group, class Body>
__global__ void run_body(Body body) {
  __shared__ Staging staging;
  body(Group{}, staging);
}

/// Like HostRunner, but with one group of the first GPU, over pinned host memory.
template <class Group, int threads>
class DeviceRunner {
 public:
  static constexpr std::uint32_t kStride = 1;

  static std::string unavailable() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) return std::string("no GPU: ") + cudaGetErrorString(status);
    return count == 0 ? "no GPU: the driver lists no GPU" : "";
  }

  class Memory {
   public:
    explicit Memory(std::size_t bytes) {
      void* data = nullptr;
      EXPECT_EQ(cudaHostAlloc(&data, bytes, cudaHostAllocPortable), cudaSuccess);
      data_ = static_cast<std::uint8_t*>(data);
      std::memset(data_, 0, bytes);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { cudaFreeHost(data_); }
    std::uint8_t* data() const { return data_; }

   private:
    std::uint8_t* data_ = nullptr;
  };

  template <class Body>
  static void run(const Body& body) {
    run_body<Group><<<1, threads>>>(body);
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
    const cudaError_t status = cudaDeviceSynchronize();
    ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status);
  }
};
using WarpRunner = DeviceRunner<Warp, 32>;
using BlockRunner = DeviceRunner<ThreadBlock, 128>;

template <class Group, class Body>
__global__ void run_groups(Body body) {
  body(Group{}, blockIdx.x);
}

/// Like HostGroups (host_groups.hpp), but on the first GPU.
template <class Group, int threads>
struct DeviceGroups {
  static constexpr std::uint32_t kGroups = 8;
  static constexpr std::uint32_t kRounds = 20;
  // A thread alone reads over PCIe byte for byte.
  static constexpr std::uint32_t kLargest = threads == 1 ? 1U << 14 : 1U << 20;
  static constexpr std::uint32_t kSharedRounds = 500;
  using Memory = WarpRunner::Memory;

  /// Memory of the GPU.
  class Scratch {
   public:
    explicit Scratch(std::size_t bytes) {
      EXPECT_EQ(cudaMalloc(&data_, bytes), cudaSuccess);
      EXPECT_EQ(cudaMemset(data_, 0, bytes), cudaSuccess);
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { cudaFree(data_); }
    [[nodiscard]] std::uint8_t* data() const { return static_cast<std::uint8_t*>(data_); }

   private:
    void* data_ = nullptr;
  };

  static void put(void* to, const void* from, std::size_t bytes) {
    EXPECT_EQ(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), cudaSuccess);
  }
  static std::string unavailable() { return WarpRunner::unavailable(); }

  template <class Body>
  static void run(std::uint32_t count, const Body& body) {
    run_groups<Group><<<count, threads>>>(body);
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
    const cudaError_t status = cudaDeviceSynchronize();
    ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status);
  }
};

}  // namespace offload::kernels::test
