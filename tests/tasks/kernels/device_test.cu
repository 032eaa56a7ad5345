#include "tests/kernels/bodies/device_runner.cuh"
#include "tests/tasks/kernels/buffer_array_body.hpp"
#include "tests/tasks/kernels/sync_event_body.hpp"

namespace offload::kernels::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Device, BufferArrays, testing::Types<WarpRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, SyncEvents, testing::Types<WarpRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(DeviceBlock, SyncEvents, testing::Types<BlockRunner>);

}  // namespace offload::kernels::test
