#include "gpu/memory.hpp"

#include <array>
#include <type_traits>

#include "tests/gpu/gpu_test.hpp"

namespace offload::gpu {
namespace {

static_assert(!std::is_copy_constructible_v<DeviceArray<int>>);
static_assert(!std::is_copy_constructible_v<PinnedArray<int>>);
static_assert(!std::is_copy_constructible_v<HostRegistration> &&
              std::is_nothrow_move_constructible_v<HostRegistration>);

using MemoryTest = test::GpuTest;

TEST_F(MemoryTest, DeviceMemoryIsFreedByItsOwnerAlone) {
  void* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, sizeof(int)), cudaSuccess);
  { EXPECT_EQ(DeviceArray<int>::from_native_handle(static_cast<int*>(data)).release(), data); }
  ASSERT_EQ(cudaMemset(data, 1, sizeof(int)), cudaSuccess);
  { EXPECT_EQ(DeviceArray<int>::from_native_handle(static_cast<int*>(data)).get(), data); }
  cudaPointerAttributes attributes{};
  const auto known = cudaPointerGetAttributes(&attributes, data);
  EXPECT_TRUE(known != cudaSuccess || attributes.type == cudaMemoryTypeUnregistered)
      << "it was not freed";
  cudaGetLastError();
}

TEST_F(MemoryTest, ArraysBeginZeroed) {
  constexpr std::size_t kCount = 1000;
  const DeviceArray<int> device(kCount);
  const PinnedArray<int> pinned(kCount);
  std::array<int, kCount> copy{};
  copy.fill(1);
  check_cuda(cudaMemcpy(copy.data(), device.get(), sizeof copy, cudaMemcpyDeviceToHost),
             "cudaMemcpy");
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(copy[i], 0);
    ASSERT_EQ(pinned.get()[i], 0);
  }
}

TEST_F(MemoryTest, HostMemoryIsRegisteredForAsLongAsItsOwnerLives) {
  alignas(4096) static std::array<std::byte, 4096> memory{};
  for (int i = 0; i < 2; ++i) {
    HostRegistration first(memory.data(), memory.size());
    const HostRegistration second = std::move(first);
    EXPECT_EQ(cudaMemset(second.device_address(), i + 1, memory.size()), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(memory.back(), static_cast<std::byte>(i + 1));
  }
}

}  // namespace
}  // namespace offload::gpu
