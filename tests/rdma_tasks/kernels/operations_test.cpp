#include "tests/kernels/bodies/host_groups.hpp"
#include "tests/rdma_tasks/kernels/operations_suite.hpp"

/// Runs the suite on threads of the host.
namespace offload::kernels::rdma::test {
namespace {

using kernels::test::HostGroups;
using Hosts = testing::Types<HostGroups<1, 4, 200>, HostGroups<4, 2, 2>, HostGroups<12, 1, 1>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Host, RdmaOperations, Hosts);

/// Another signal may come before the first look.
TEST(WaitSignal, IsOverWhereMoreHasComeThanItWaitsFor) {
  const kernels::SingleLane one;
  const std::uint64_t word = 6;
  for (const std::uint64_t sum : {1U, 3U, 6U}) {
    EXPECT_EQ(wait_signal(one, &word, sum, {1'000'000}), WorkResult::done) << sum;
  }
  EXPECT_EQ(wait_signal(one, &word, 7, {1'000'000}), WorkResult::timed_out);
}

}  // namespace
}  // namespace offload::kernels::rdma::test
