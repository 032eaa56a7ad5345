#pragma once

#include "tests/kernels/bodies/device_runner.cuh"

namespace offload::kernels::test {

template <class Group, class Body>
__global__ void run_groups(Body body) {
  body(Group{}, blockIdx.x);
}

/// As HostGroups (host_groups.hpp), on the first GPU.
template <class Group, int threads>
struct DeviceGroups {
  static constexpr std::uint32_t kGroups = 8;
  static constexpr std::uint32_t kRounds = 20;
  // A thread alone reads over PCIe byte for byte.
  static constexpr std::uint32_t kLargest = threads == 1 ? 1U << 14 : 1U << 20;
  static constexpr std::uint32_t kSharedRounds = 500;
  using Memory = WarpRunner::Memory;

  /// Of the GPU.
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
