#include "tests/kernels/bodies/device_runner.cuh"
#include "tests/kernels/packets/queue_suite.hpp"

/// The same on a GPU: threads, warps and blocks, with memory of the host that is mapped, beside a
/// thread of the host that is the driver or the card.
namespace offload::kernels::packets::test {
namespace {

using kernels::test::DeviceGroups;
using OfThread = DeviceGroups<SingleLane, 1>;
using OfWarp = DeviceGroups<Warp, 32>;
using OfBlock = DeviceGroups<ThreadBlock, 128>;

using Setups = testing::Types<WithRings<OfThread>, WithRings<OfWarp>, WithRings<OfBlock>,
                              WithCard<OfThread, 0>, WithCard<OfWarp, rdma::kMostInlineHeader>,
                              WithCard<OfBlock, 0>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Device, PacketQueues, Setups);
using Runners = testing::Types<OfThread, OfWarp, OfBlock>;
INSTANTIATE_TYPED_TEST_SUITE_P(Device, PacketFunctions, Runners);

}  // namespace
}  // namespace offload::kernels::packets::test
