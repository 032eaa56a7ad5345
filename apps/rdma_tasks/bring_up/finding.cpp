#include "apps/rdma_tasks/bring_up/finding.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/escape.hpp"

namespace offload::rdma_tool {
namespace {

/// The length of the longest step, so that the columns of all findings are equal.
constexpr int kStepWidth = 16;

const char* name_of(StepVerdict verdict) noexcept {
  constexpr const char* kNames[] = {"good", "note", "warning", "error"};
  return kNames[static_cast<std::size_t>(verdict)];
}

}  // namespace

std::string make_text(const StepFinding& finding) {
  std::string text = fmt::format("{:<7}  {:<{}}  {}\n", name_of(finding.verdict), finding.step,
                                 kStepWidth, core::escaped(finding.found));
  if (!finding.to_fix.empty()) {
    text += fmt::format("{:{}}to fix: {}\n", "", 7 + 2 + kStepWidth + 2, finding.to_fix);
  }
  return text;
}

bool is_ready(const StepFindings& findings) noexcept {
  return std::ranges::none_of(
      findings, [](const StepFinding& finding) { return finding.verdict == StepVerdict::error; });
}

}  // namespace offload::rdma_tool
