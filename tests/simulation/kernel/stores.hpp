#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "tests/simulation/kernel/kernel.hpp"

namespace offload::simulation {

/// From now on a worker may lose its processor between any two stores to the memory that it shares:
/// what it maps is write-protected, and each store that traps is made as a single step. So the code
/// that stores is the programs' own. How many stores a copy of bytes is, is the machine's libc's to
/// say, and with it the trace.
void trap_stores();

/// And is killed before one of so many, by `kill`.
void kill_at_stores(std::uint64_t one_in, std::function<void(Process&)> kill);

/// What the current process has mapped, to be written.
void note_mapping(void* begin, std::size_t size);

}  // namespace offload::simulation
