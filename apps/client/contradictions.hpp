#pragma once

#include <string>

#include "apps/client/options.hpp"
#include "cli/options.hpp"

namespace offload::client {

/// Returns why valid options contradict each other, which CLI11's needs and excludes cannot
/// express. One line; empty if they do not.
std::string contradiction_in(const cli::CommandLine& line, const Options& options);

}  // namespace offload::client
