#include "tests/kernels/bodies/host_runner.hpp"
#include "tests/tasks/kernels/buffer_array_body.hpp"

namespace offload::kernels::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Host, BufferArrays, testing::Types<HostRunner>);

}  // namespace offload::kernels::test
