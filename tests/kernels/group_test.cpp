#include "tests/kernels/bodies/group_body.hpp"
#include "tests/kernels/bodies/host_runner.hpp"

namespace offload::kernels::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Host, Group, testing::Types<HostRunner>);

}  // namespace offload::kernels::test
