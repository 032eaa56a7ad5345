#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "tests/simulation/kernel/kernel.hpp"

namespace offload::simulation {

/// Makes every store to shared memory a preemption point of workers from now on: their mappings are
/// write-protected, and each store that traps is made as a single step. So the code that stores is
/// the programs' own. The machine's libc decides how many stores a copy of bytes has, and so
/// affects the trace.
void trap_stores();

/// Kills a worker before one in `one_in` of these stores, by `kill`.
void kill_at_stores(std::uint64_t one_in, std::function<void(Process&)> kill);

/// Notes a writable mapping of the current process.
void note_mapping(void* begin, std::size_t size);

}  // namespace offload::simulation
