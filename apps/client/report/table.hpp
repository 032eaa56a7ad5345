#pragma once

#include <string>

#include "apps/client/run/run_result.hpp"

namespace offload::client {

/// A run as text: one "name: value" a line, then the latencies side by side, then the verdict. The
/// first five names are those of DOCA's dpu_gpu_remote_offload client, so that scripts that parse
/// its output can parse this.
std::string make_table(const RunResult& result);

/// A run in one line, for a command of several.
std::string make_line(const RunResult& result);

}  // namespace offload::client
