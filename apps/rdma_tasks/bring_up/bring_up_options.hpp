#pragma once

#include <variant>

#include "apps/rdma_tasks/options.hpp"
#include "cli/leave.hpp"
#include "core/clock.hpp"

namespace offload::rdma_tool {

/// The word of the command line that selects the bring-up.
inline constexpr const char* kBringUp = "bring-up";

/// The checked command line of `offload-rdma bring-up`.
struct BringUpOptions {
  Options run;                                  ///< device, path, GPU, time-out and log
  core::Duration rate_time = core::seconds(1);  ///< of each measured rate
};

/// Parses the command line from the word "bring-up" on.
std::variant<BringUpOptions, cli::Leave> parse_bring_up_options(int argc, const char* const* argv);

}  // namespace offload::rdma_tool
