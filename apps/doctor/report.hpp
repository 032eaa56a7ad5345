#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/doctor/finding.hpp"
#include "core/escape.hpp"

namespace offload::doctor {

[[nodiscard]] inline Severity worst_of(const Findings& findings) {
  Severity worst = Severity::good;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

/// A line for each finding, and what to do below those that are not good.
inline std::string make_text(const Findings& findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.subject.size());
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<7}  {:<{}}  {}\n", name_of(finding.severity), finding.subject, width,
                        core::escaped(finding.found));
    const std::string margin(width + 11, ' ');
    if (!finding.expected.empty())
      text += fmt::format("{}expected: {}\n", margin, finding.expected);
    if (!finding.mend.empty()) text += fmt::format("{}to fix:   {}\n", margin, finding.mend);
  }
  return text;
}

/// The commands of all findings that have one, the worst first, numbered; last how to try `device`.
inline std::string make_plan(const Findings& findings, const std::string& device) {
  Findings open;
  std::ranges::copy_if(findings, std::back_inserter(open),
                       [](const Finding& finding) { return !finding.mend.empty(); });
  std::ranges::stable_sort(open, std::greater(), &Finding::severity);
  std::string text =
      "\n"
      "Do this, in this order:\n";
  int step = 0;
  for (const Finding& finding : open) {
    text += fmt::format("{:>3}. {}: {}\n", ++step, finding.subject, finding.mend);
  }
  return text + fmt::format(
                    "{:>3}. test it: offload-rdma write --role responder --device {} --cm ADDRESS; "
                    "on the peer the same with --role requester\n",
                    ++step, device);
}

/// A JSON object: "program", "worst" and "findings".
inline std::string make_json(const Findings& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"severity", name_of(finding.severity)},
                    {"subject", finding.subject},
                    {"found", core::escaped(finding.found)},
                    {"expected", finding.expected},
                    {"mend", finding.mend}});
  }
  const nlohmann::ordered_json object{{"program", "offload-doctor"},
                                      {"worst", name_of(worst_of(findings))},
                                      {"findings", std::move(list)}};
  return object.dump(2) + '\n';
}

/// Returns the exit status: 0 without warnings, 3 with some, 4 with errors.
[[nodiscard]] inline int exit_status(Severity worst) {
  if (worst == Severity::error) return 4;
  return worst == Severity::warning ? 3 : 0;
}

}  // namespace offload::doctor
