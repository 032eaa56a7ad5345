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

template <class Body>
__global__ void run_body(Body body) {
  __shared__ Staging staging;
  body(Warp{}, staging);
}

/// As HostRunner, on one warp of the first GPU, over pinned host memory.
class DeviceRunner {
 public:
  static std::string unavailable() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) return std::string("no GPU: ") + cudaGetErrorString(status);
    return count == 0 ? "no GPU: the driver lists none" : "";
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
    run_body<<<1, 32>>>(body);
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
    const cudaError_t status = cudaDeviceSynchronize();
    ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status);
  }
};

}  // namespace offload::kernels::test
