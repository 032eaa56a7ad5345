#pragma once

#include <cstdint>

namespace offload::simulation {

/// Called at each allocation that a program makes itself, not the kernel for it, if operator new
/// is replaced (allocations.cpp): true lets it fail. Null: none fails.
extern bool (*allocation_fails)();

/// Returns the number of blocks from operator new that fibers of that process have made, that were
/// not freed, and that no pointer leads to any more: neither from static variables, nor from a
/// thread that was cut off at the process's end. `shows`: writes where they were made to standard
/// output, if `keep_places` was called before.
std::uint64_t lost_blocks_of(int pid, bool shows);
void keep_places();

}  // namespace offload::simulation
