#pragma once

#include <string>

#include "apps/client/options.hpp"
#include "cli/options.hpp"

namespace offload::client {

/// What is wrong about options that are each right: what CLI11's needs and excludes cannot say.
/// One line; empty if nothing is.
std::string contradiction_in(const cli::CommandLine& line, const Options& options);

}  // namespace offload::client
