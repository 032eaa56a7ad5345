#include "tests/kernels/bodies/host_groups.hpp"
#include "tests/kernels/rdma/operations_suite.hpp"

/// Runs the suite on threads of the host.
namespace offload::kernels::rdma::test {
namespace {

using kernels::test::HostGroups;
using Hosts = testing::Types<HostGroups<1, 4, 200>, HostGroups<4, 2, 2>, HostGroups<12, 1, 1>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Host, RdmaOperations, Hosts);

}  // namespace
}  // namespace offload::kernels::rdma::test
