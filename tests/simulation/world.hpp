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
  kReplaces = 64,
  kStrangers = 128,  ///< on the workers' port
  kServers = 256,    ///< the server is killed, or ends, under load
  kTrials = 512,     ///< one thing at a time, with all that is to come of it
  kCrowds = 1024,    ///< many clients, at a bound of the server's
  // Only where they are asked for:
  kShortages = 2048,
  kStores = 4096,  ///< workers are killed between two stores
  kPauses = 8192   ///< the server is frozen, alone or with its workers
};
inline constexpr unsigned kAllFaults = 2047 | kPauses;

/// The parameters of a seed's run.
struct Plan {
  unsigned faults = kAllFaults;
  std::uint64_t most_disturbances = UINT64_MAX;  ///< under load
  std::uint64_t most_clients = UINT64_MAX;
  bool traces = false;
};

struct Outcome {
  std::uint64_t hash;
  std::uint64_t steps;
  std::uint64_t answered;
  std::uint64_t refused;
  std::int64_t nanoseconds;  ///< of virtual time
  std::vector<std::string> failures;
};

/// Runs the world of `seed`, from the start of a server to its end. Call it once a process.
Outcome simulate(std::uint64_t seed, const Plan& plan);

}  // namespace offload::simulation
