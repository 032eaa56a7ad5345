#pragma once

#include "tests/simulation/scene.hpp"

namespace offload::simulation {

/// Looks every second of virtual time, on a fiber of its own: whether a thread turns without
/// anything to do, and whether a process holds more descriptors than it has use for.
void watch_over(Scene& scene);

/// For the end of quiet seconds: nothing turns, and no descriptor is left over.
void look_at_quiet(Scene& scene);

}  // namespace offload::simulation
