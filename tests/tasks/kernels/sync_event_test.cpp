#include "tests/kernels/bodies/host_runner.hpp"
#include "tests/tasks/kernels/sync_event_body.hpp"

namespace offload::kernels::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Host, SyncEvents, testing::Types<HostRunner>);

}  // namespace offload::kernels::test
