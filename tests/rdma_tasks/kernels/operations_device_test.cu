#include "tests/kernels/bodies/device_runner.cuh"
#include "tests/rdma_tasks/kernels/operations_suite.hpp"

/// The same on a GPU: threads, warps and blocks beside a thread of the host that is the card.
namespace offload::kernels::rdma::test {
namespace {

using kernels::test::DeviceGroups;
using Devices = testing::Types<DeviceGroups<SingleLane, 1>, DeviceGroups<Warp, 32>,
                               DeviceGroups<ThreadBlock, 128>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Device, RdmaOperations, Devices);

}  // namespace
}  // namespace offload::kernels::rdma::test
