#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <exception>

namespace offload::samples {

/// The exit status of a sample: that of `run()`, or 1 after printing its error. `name`: the
/// program's.
template <class Run>
int exit_status_of(const char* name, Run run) {
  try {
    return run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 1;
  }
}

}  // namespace offload::samples
