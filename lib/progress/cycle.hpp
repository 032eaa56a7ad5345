#pragma once

#include <cstdint>
#include <vector>

namespace offload::progress {

/// The edges of a graph: for each node, the nodes that wait for it.
using Dependents = std::vector<std::vector<std::uint32_t>>;

/// The nodes of a cycle, each waiting for the one before it and the first for the last; empty if
/// the graph has no cycle.
std::vector<std::uint32_t> find_cycle(const Dependents& dependents);

}  // namespace offload::progress
