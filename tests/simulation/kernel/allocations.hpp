#pragma once

#include <cstdint>

namespace offload::simulation {

/// Asked at each allocation that a program makes itself, not the kernel for it, where operator new
/// is replaced (allocations.cpp): true lets it fail. Null: none does.
extern bool (*allocation_fails)();

/// Blocks from operator new that fibers of that process have made, nobody has freed, and nothing
/// leads to any more: not from what is static, nor from a thread that its end has cut off. `shows`:
/// where they were made is written to standard output, if `keep_places` was called before.
std::uint64_t lost_blocks_of(int pid, bool shows);
void keep_places();

}  // namespace offload::simulation
