#include "gpu/cuda_ranges.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "core/error.hpp"
#include "gpu/error.hpp"
#include "memory/region.hpp"
#include "tests/gpu/gpu_test.hpp"
#include "tests/support/thrown.hpp"

namespace offload::gpu {
namespace {

using core::ErrorCode;
using memory::Access;
using memory::Location;
using memory::MemoryRegion;

constexpr std::size_t kBytes = 1U << 20;
constexpr Access kGpuAccess = memory::kLocalAccess | Access::peer_pcie;

class CudaRanges : public test::GpuTest {
 protected:
  CudaRegistrar registrar_;
};

/// Has the GPU write to where it sees the memory.
void fill(void* device_address, std::size_t length, int value) {
  check_cuda(cudaMemset(device_address, value, length), "cudaMemset");
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

TEST_F(CudaRanges, RegionsOfTheGpusOwnAndOfPinnedMemory) {
  MemoryRegion region({"both", memory::kLocalAccess},
                      {make_device_range(kBytes), make_pinned_range(kBytes)});
  region.start();
  EXPECT_EQ(region.ranges()[0].location, Location::device);
  EXPECT_EQ(region.ranges()[1].location, Location::host);
  fill(region.ranges()[0].address, kBytes, 1);
  fill(region.ranges()[1].address, kBytes, 7);
  EXPECT_EQ(region.ranges()[1].address[kBytes - 1], std::byte{7});
  region.stop();
}

TEST_F(CudaRanges, AnExportedRangeHasADmaBufWhereTheGpuDoes) {
  const memory::Range range = make_exported_range(kBytes);
  fill(range.address, kBytes, 3);
  EXPECT_EQ(range.location, Location::device);
  EXPECT_EQ(range.length, kBytes);
  const auto gpu = device::list_gpus().devices.front();
  if (!device::supports(gpu, device::Capability::dma_buf)) {
    EXPECT_EQ(range.descriptor.kind, memory::DescriptorKind::none);
    return;
  }
  ASSERT_EQ(range.descriptor.kind, memory::DescriptorKind::dma_buf);
  EXPECT_GE(::lseek(range.descriptor.fd, 0, SEEK_END), static_cast<off_t>(kBytes));
}

TEST_F(CudaRanges, MemoryOfTheHostIsReachedWhileTheRegionIsStarted) {
  MemoryRegion region({"host", kGpuAccess}, {memory::allocate_range(kBytes)});
  region.add_registrar(registrar_);
  region.start();
  const memory::MemoryKey* const key = region.key(registrar_, 0);
  ASSERT_NE(key, nullptr);
  fill(key->handle, kBytes, 9);
  EXPECT_EQ(region.ranges()[0].address[kBytes - 1], std::byte{9});
  region.stop();
  region.start();  // what was registered is free to be registered again
  region.stop();
}

TEST_F(CudaRanges, PinnedMemoryIsRegisteredAlready) {
  MemoryRegion region({"pinned", kGpuAccess}, {make_pinned_range(kBytes)});
  region.add_registrar(registrar_);
  for (int value = 1; value <= 2; ++value) {
    region.start();
    fill(region.key(registrar_, 0)->handle, kBytes, value);
    EXPECT_EQ(region.ranges()[0].address[0], static_cast<std::byte>(value));
    region.stop();
  }
}

TEST_F(CudaRanges, SharedMemoryIsReachedToo) {
  MemoryRegion region({"shared", kGpuAccess}, {memory::share_range("shared", kBytes)});
  region.add_registrar(registrar_);
  region.start();
  fill(region.key(registrar_, 0)->handle, kBytes, 5);
  EXPECT_EQ(region.ranges()[0].address[0], std::byte{5});
}

TEST_F(CudaRanges, ARegionThatDoesNotAllowItIsNotRegistered) {
  MemoryRegion region({"local", memory::kLocalAccess}, {memory::allocate_range(kBytes)});
  region.add_registrar(registrar_);
  EXPECT_EQ(support::thrown_by([&] { region.start(); }).code(), ErrorCode::not_permitted);
  EXPECT_FALSE(region.started());
}

}  // namespace
}  // namespace offload::gpu
