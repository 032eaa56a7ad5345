#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace offload::rdma_tool {

/// The effect of a finding on the worker's default data path, the worst last.
enum class StepVerdict : std::uint8_t {
  good,
  note,     ///< the data path does not need it, or it was not tried
  warning,  ///< the data path works in another way, or slower
  error,    ///< the data path cannot work
};

/// The result of one step of the bring-up.
struct StepFinding {
  StepVerdict verdict = StepVerdict::good;
  std::string step;    ///< such as "queue pairs"
  std::string found;   ///< what is there, or what failed
  std::string to_fix;  ///< what to do; empty if there is nothing to do
};

using StepFindings = std::vector<StepFinding>;

/// Returns the finding as a line of text, and a line with its fix if there is one.
std::string make_text(const StepFinding& finding);

/// Returns whether the worker's default data path can work: no finding is an error.
bool is_ready(const StepFindings& findings) noexcept;

}  // namespace offload::rdma_tool
