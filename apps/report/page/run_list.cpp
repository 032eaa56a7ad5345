#include "apps/report/page/run_list.hpp"

#include <fmt/core.h>

namespace offload::report {

std::string letter_of(std::size_t result, std::size_t results) {
  if (results == 1) return {};
  return result < 26 ? std::string(1, static_cast<char>('A' + result))
                     : fmt::format("R{}", result + 1);
}

std::vector<ShownRun> list_runs(const std::vector<Result>& results) {
  std::vector<ShownRun> shown;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& result = results[i];
    for (std::size_t j = 0; j < result.runs.size(); ++j) {
      const std::string letter = letter_of(i, results.size());
      const bool numbered = letter.empty() || result.runs.size() > 1;
      const std::string number = numbered ? std::to_string(j + 1) : std::string();
      const char* const separator = letter.size() > 1 && numbered ? "." : "";
      shown.push_back({&result, &result.runs[j], fmt::format("{}{}{}", letter, separator, number),
                       letter.empty() ? number : letter, letter.empty() ? j : i});
    }
  }
  return shown;
}

}  // namespace offload::report
