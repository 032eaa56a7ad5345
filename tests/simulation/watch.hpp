#pragma once

#include "tests/simulation/scene.hpp"

namespace offload::simulation {

/// Checks every second of virtual time, on a separate fiber, that no thread turns without anything
/// to do, and that no process holds more descriptors than it needs.
void watch_over(Scene& scene);

/// Checks at the end of quiet seconds that no thread turns, and that no descriptor is left over.
void look_at_quiet(Scene& scene);

}  // namespace offload::simulation
