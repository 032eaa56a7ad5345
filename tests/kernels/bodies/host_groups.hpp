#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "tests/kernels/bodies/host_warp.hpp"

namespace offload::kernels::test {

/// Groups that threads play: one alone, and lanes that meet at each step. A body is called by every
/// lane of each group, with its group and the group's number.
template <std::uint32_t lanes, std::uint32_t groups, std::uint32_t rounds>
struct HostGroups : HostPlace {
  static constexpr std::uint32_t kGroups = groups;
  static constexpr std::uint32_t kRounds = rounds;
  static constexpr std::uint32_t kLargest = 1U << 20;
  static constexpr std::uint32_t kSharedRounds = 10 * rounds;

  static std::string unavailable() { return {}; }

  template <class Body>
  static void run(std::uint32_t count, const Body& body) {
    std::vector<std::unique_ptr<HostLanes>> shared;
    std::vector<std::jthread> threads;
    for (std::uint32_t group = 0; group < count; ++group) {
      if constexpr (lanes == 1) {
        threads.emplace_back([&body, group] { body(SingleLane{}, group); });
      } else {
        auto& meeting = *shared.emplace_back(std::make_unique<HostLanes>(lanes));
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
          threads.emplace_back(
              [&body, &meeting, group, lane] { body(HostWarp(meeting, lane), group); });
        }
      }
    }
  }
};

}  // namespace offload::kernels::test
