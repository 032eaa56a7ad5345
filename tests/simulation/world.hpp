#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace offload::simulation {

/// A kind of fault; a failing seed is tried again with fewer of them.
enum Fault : unsigned {
  kSplits = 1,
  kResets = 2,
  kKills = 4,
  kFreezes = 8,
  kLeaves = 16,
  kLies = 32,
  // Not among those below: they are asked for.
  kShortages = 64,
  kStores = 128  ///< workers are killed between two stores
};
inline constexpr unsigned kAllFaults = 63;

struct Outcome {
  std::uint64_t hash;
  std::uint64_t steps;
  std::uint64_t answered;
  std::uint64_t refused;
  std::int64_t nanoseconds;  ///< of virtual time
  std::vector<std::string> failures;
};

/// The world that `seed` says, from the start of a server to its end. Once a process.
Outcome simulate(std::uint64_t seed, unsigned faults, bool traces);

}  // namespace offload::simulation
