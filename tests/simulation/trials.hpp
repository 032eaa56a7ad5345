#pragma once

#include <vector>

#include "tests/simulation/scene.hpp"

namespace offload::simulation {

/// One thing that happens while nothing else does, and all that is to come of it: with the reason
/// that is given, and the time that it takes.
struct Trial {
  const char* name;
  void (*run)(Scene& scene);
};

extern const std::vector<Trial> kWorkerTrials;
extern const std::vector<Trial> kServerTrials;
extern const std::vector<Trial> kClientTrials;
extern const std::vector<Trial> kStrangerTrials;
/// A peer that comes to the workers' port with rubbish, and goes.
void bother(const std::string& address);
/// A worker that writes what it likes into its answers, while they are taken.
void worker_lies(Scene& scene);
void worker_miscounts(Scene& scene);
/// Tries the bound that is tight; does nothing if none is.
void try_bound(Scene& scene);

}  // namespace offload::simulation
