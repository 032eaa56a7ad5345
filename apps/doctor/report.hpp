#pragma once

#include <string>

#include "apps/doctor/finding.hpp"

namespace offload::doctor {

/// A line for each finding, and what to do below those that are not good.
std::string make_text(const Findings& findings);

/// The commands of all findings that have one, the worst first, numbered; last how to try `device`.
std::string make_plan(const Findings& findings, const std::string& device);

/// A JSON object: "program", "worst" and "findings".
std::string make_json(const Findings& findings);

[[nodiscard]] Severity worst_of(const Findings& findings);

/// Returns the exit status: 0 without warnings, 3 with some, 4 with errors.
[[nodiscard]] int exit_status(Severity worst);

}  // namespace offload::doctor
