#pragma once

#include <functional>
#include <string>

namespace offload::core {

/// The body of a main. Returns what `run` returns, or 1 after printing an error of `program`: what
/// `run` threw, that standard output could not be written, as on a full disk, or that the limit of
/// the stack is too low to run. Ignores SIGXFSZ: writes beyond `ulimit -f` fail with EFBIG. Opens
/// /dev/null on those of descriptors 0 to 2 that are closed. Closes standard output.
int exit_status_of(const std::string& program, const std::function<int()>& run) noexcept;

}  // namespace offload::core
