#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "tests/simulation/kernel/kernel.hpp"

namespace offload::simulation {

/// Lets one in `one_in` calls of a server fail from now on for lack of descriptors or memory, where
/// no client or worker may lose anything by that: a client that connects waits, and a worker whose
/// channels cannot be made is told to try again. Calls do not fail while the server starts, because
/// it then exits with the reason.
inline void begin_shortages(Kernel& world, std::uint64_t one_in) {
  world.refuses = [&world, one_in](std::string_view call, std::initializer_list<int> errors) {
    constexpr std::array<std::string_view, 5> kCalls{"accept", "memfd_create", "mmap", "pipe2",
                                                     "ftruncate"};
    if (!world.current->process->name.starts_with("server")) return 0;
    if (world.current->sleeps == 0) return 0;
    if (std::ranges::find(kCalls, call) == kCalls.end() || !world.random.one_in(one_in)) return 0;
    const int error = errors.begin()[world.random.below(errors.size())];
    // These errors would also take a connection that waits.
    return error == ECONNABORTED || error == EPERM ? 0 : error;
  };
}

}  // namespace offload::simulation
