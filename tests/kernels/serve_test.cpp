#include "tests/kernels/bodies/host_runner.hpp"
#include "tests/kernels/bodies/serve_body.hpp"

namespace offload::kernels::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Host, Serve, testing::Types<HostRunner>);

}  // namespace offload::kernels::test
