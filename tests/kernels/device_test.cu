#include "kernels/launch_kernel.cuh"
#include "tests/kernels/bodies/batch_body.hpp"
#include "tests/kernels/bodies/device_runner.cuh"
#include "tests/kernels/bodies/group_body.hpp"
#include "tests/kernels/bodies/message_body.hpp"
#include "tests/kernels/bodies/serve_body.hpp"
#include "tests/kernels/bodies/services_body.hpp"
#include "tests/kernels/bodies/slot_batch_body.hpp"
#include "tests/kernels/comch/comch_body.hpp"
#include "tests/kernels/comch/unsolicited_body.hpp"

namespace offload::kernels::test {
namespace {

__global__ void add(std::uint32_t* sum, std::uint32_t value) {
  atomicAdd(sum, value);
}

// A call that failed before, and whose error was handled, is no failure of the launch.
TEST(LaunchKernel, ReturnsItsOwnStatusAlone) {
  std::uint32_t* sum = nullptr;
  ASSERT_EQ(cudaMallocManaged(&sum, sizeof *sum), cudaSuccess);
  *sum = 0;
  ASSERT_NE(cudaSetDevice(-1), cudaSuccess);
  EXPECT_EQ(launch_kernel(add, 2, 32, nullptr, sum, 3), cudaSuccess);
  EXPECT_EQ(launch_kernel(add, 1, 4096, nullptr, sum, 3), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(*sum, 2 * 32 * 3);
  EXPECT_EQ(cudaFree(sum), cudaSuccess);
  cudaGetLastError();  // clears what the calls that must fail left
}

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Device, Batches, testing::Types<WarpRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, Comch, testing::Types<WarpRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, Group, testing::Types<WarpRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, Message, testing::Types<WarpRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, Serve, testing::Types<WarpRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, ServicesRight, testing::Types<WarpRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, SlotBatches, testing::Types<WarpRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, Unsolicited, testing::Types<WarpRunner>);

INSTANTIATE_TYPED_TEST_SUITE_P(DeviceBlock, Batches, testing::Types<BlockRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(DeviceBlock, Comch, testing::Types<BlockRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(DeviceBlock, Group, testing::Types<BlockRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(DeviceBlock, ServicesRight, testing::Types<BlockRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(DeviceBlock, SlotBatches, testing::Types<BlockRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(DeviceBlock, Unsolicited, testing::Types<BlockRunner>);

}  // namespace offload::kernels::test
