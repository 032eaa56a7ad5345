#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "apps/report/vocabulary.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"
#include "results/read_result.hpp"

namespace offload::report {

inline std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path().string());
  }
  const std::string shown = core::escaped(folder);
  if (error) {
    throw core::Error(core::ErrorCode::io_failed,
                      fmt::format("'{}' cannot be read: {}", shown, error.message()));
  }
  if (files.empty()) {
    throw core::Error(core::ErrorCode::not_found,
                      fmt::format("the folder '{}' has no file *.json", shown));
  }
  std::ranges::sort(files);
  return files;
}

inline std::vector<std::string> files_of(const std::string& text) {
  std::error_code ignored;
  if (std::filesystem::is_directory(text, ignored)) return files_in(text);
  if (std::filesystem::exists(text, ignored)) return {text};  // also with a comma in its name
  std::vector<std::string> files;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    files.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return files;
}

/// BASE or NEW of a comparison: results and all their runs.
struct Side {
  std::string name;  ///< as it was given
  std::vector<Result> results;

  /// In the order in which they began; they point into `results`.
  [[nodiscard]] std::vector<const Run*> runs() const {
    std::vector<const Run*> runs;
    for (const Result& result : results) {
      for (const Run& run : result.runs) runs.push_back(&run);
    }
    std::ranges::stable_sort(runs, {}, &Run::started_at_unix_s);
    return runs;
  }
  /// Errors of all kinds, and requests that were not answered.
  [[nodiscard]] std::uint64_t error_count() const {
    std::uint64_t sum = 0;
    for (const Result& result : results) {
      for (const Run& run : result.runs) sum += run.error_count() + run.unanswered_requests;
    }
    return sum;
  }
};

/// Reads the side that `text` names: a file, several as "a,b,c", or a folder, of which it takes all
/// files *.json. Throws Error.
inline Side read_side(const std::string& text) {
  Side side{text, {}};
  for (const std::string& file : files_of(text)) side.results.push_back(results::read_result(file));
  return side;
}

}  // namespace offload::report
