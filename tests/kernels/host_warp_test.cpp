#include "tests/kernels/bodies/host_warp.hpp"

#include "tests/kernels/bodies/group_body.hpp"
#include "tests/kernels/bodies/serve_body.hpp"
#include "tests/kernels/bodies/services_body.hpp"
#include "tests/kernels/bodies/slot_batch_body.hpp"

/// Runs the bodies on warps and blocks of threads: each of their steps is a barrier, so fewer
/// cases.
namespace offload::kernels::test {

using Groups = testing::Types<HostWarpRunner<32>, HostWarpRunner<64>, HostWarpRunner<128>>;

INSTANTIATE_TYPED_TEST_SUITE_P(HostWarp, Group, Groups);
INSTANTIATE_TYPED_TEST_SUITE_P(HostWarp, SlotBatches, Groups);
INSTANTIATE_TYPED_TEST_SUITE_P(HostWarp, Serve, testing::Types<HostWarpRunner<32>>);
INSTANTIATE_TYPED_TEST_SUITE_P(HostWarp, ServicesRight, testing::Types<HostWarpRunner<32>>);

}  // namespace offload::kernels::test
