#include "progress/cycle.hpp"

#include <algorithm>
#include <cstddef>

namespace offload::progress {
namespace {

using Nodes = std::vector<std::uint32_t>;

/// For each node, the number of nodes that it still waits for after every node that can be done was
/// done (Kahn's algorithm). Not zero: the node is in a cycle, or waits for one.
Nodes count_unmet(const Dependents& dependents) {
  Nodes unmet(dependents.size(), 0);
  for (const Nodes& waiting : dependents) {
    for (const std::uint32_t node : waiting) ++unmet[node];
  }
  Nodes done;
  for (std::uint32_t node = 0; node < unmet.size(); ++node) {
    if (unmet[node] == 0) done.push_back(node);
  }
  while (!done.empty()) {
    const std::uint32_t node = done.back();
    done.pop_back();
    for (const std::uint32_t waiting : dependents[node]) {
      if (--unmet[waiting] == 0) done.push_back(waiting);
    }
  }
  return unmet;
}

}  // namespace

std::vector<std::uint32_t> find_cycle(const Dependents& dependents) {
  const Nodes unmet = count_unmet(dependents);
  const auto stuck =
      std::find_if(unmet.begin(), unmet.end(), [](auto count) { return count != 0; });
  if (stuck == unmet.end()) return {};
  // Each stuck node waits for another stuck node: following these edges leads into a cycle.
  Nodes waits_for(dependents.size(), 0);
  for (std::uint32_t node = 0; node < dependents.size(); ++node) {
    if (unmet[node] == 0) continue;
    for (const std::uint32_t waiting : dependents[node]) waits_for[waiting] = node;
  }
  auto at = static_cast<std::uint32_t>(stuck - unmet.begin());
  for (std::size_t steps = 0; steps < dependents.size(); ++steps) at = waits_for[at];
  Nodes cycle{at};
  for (std::uint32_t node = waits_for[at]; node != at; node = waits_for[node])
    cycle.push_back(node);
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

}  // namespace offload::progress
