#pragma once

#include "apps/report/options.hpp"

namespace offload::report {

/// Each sub-command, from its files to its exit status. Throws Error of one line.
int run(const MergeOptions& options);
int run(const HtmlOptions& options);
int run(const CompareOptions& options);

}  // namespace offload::report
