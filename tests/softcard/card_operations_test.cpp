#include "tests/kernels/bodies/host_groups.hpp"
#include "tests/rdma_tasks/kernels/operations_suite.hpp"

/// Runs the suite on threads of the host, with queues that the real libmlx5 makes.
namespace offload::kernels::rdma::test {
namespace {

using kernels::test::HostGroups;
// Groups of several threads spin, which leaves a guest of two processors no time for the card.
using Hosts = testing::Types<HostGroups<1, 2, 4>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Card, RdmaOperations, Hosts);

}  // namespace
}  // namespace offload::kernels::rdma::test
