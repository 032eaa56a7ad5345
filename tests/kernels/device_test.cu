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
