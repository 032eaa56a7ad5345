#pragma once

#include <string>

#include "apps/report/vocabulary.hpp"

namespace offload::report {

/// How a result ended, as HTML: its errors and faults if there are any, then the figures that
/// people ask for first. `name`: what the page calls it, HTML already.
std::string status_banner(const std::string& name, const Result& result);

}  // namespace offload::report
