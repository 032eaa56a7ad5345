#include <thread>

#include "tests/kernels/bodies/host_warp.hpp"
#include "tests/kernels/rdma/operations_suite.hpp"

/// Groups that threads play: one alone, and lanes that meet at each step.
namespace offload::kernels::rdma::test {
namespace {

template <std::uint32_t lanes, std::uint32_t groups, std::uint32_t rounds>
struct HostGroups {
  static constexpr std::uint32_t kGroups = groups;
  static constexpr std::uint32_t kRounds = rounds;
  static constexpr std::uint32_t kLargest = 1U << 20;
  static constexpr std::uint32_t kSharedRounds = 10 * rounds;
  using Memory = kernels::test::HostRunner::Memory;
  using Scratch = Memory;

  static std::string unavailable() { return {}; }

  template <class Body>
  static void run(std::uint32_t count, const Body& body) {
    std::vector<std::unique_ptr<kernels::test::HostLanes>> shared;
    std::vector<std::jthread> threads;
    for (std::uint32_t group = 0; group < count; ++group) {
      if constexpr (lanes == 1) {
        threads.emplace_back([&body, group] { body(SingleLane{}, group); });
      } else {
        auto& meeting = *shared.emplace_back(std::make_unique<kernels::test::HostLanes>(lanes));
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
          threads.emplace_back([&body, &meeting, group, lane] {
            body(kernels::test::HostWarp(meeting, lane), group);
          });
        }
      }
    }
  }
};

using Hosts = testing::Types<HostGroups<1, 4, 200>, HostGroups<4, 2, 2>, HostGroups<12, 1, 1>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Host, RdmaOperations, Hosts);

}  // namespace
}  // namespace offload::kernels::rdma::test
