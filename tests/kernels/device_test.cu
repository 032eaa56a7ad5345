#include "tests/kernels/buffer_array_body.hpp"
#include "tests/kernels/device_runner.cuh"
#include "tests/kernels/group_body.hpp"
#include "tests/kernels/message_body.hpp"
#include "tests/kernels/serve_body.hpp"
#include "tests/kernels/services_body.hpp"

namespace offload::kernels::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Device, BufferArrays, testing::Types<DeviceRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, Group, testing::Types<DeviceRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, Message, testing::Types<DeviceRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, Serve, testing::Types<DeviceRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, ServicesRight, testing::Types<DeviceRunner>);

}  // namespace offload::kernels::test
