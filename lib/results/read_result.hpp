#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/result.hpp"

namespace offload::results {

/// Parses the result in `text`, which is untrusted; `file` names it in errors. Throws Error
/// (bad_message) of one line, with file and field, for a text that is not a result of format 1.
/// Unknown fields are ignored.
Result parse_result(std::string_view text, const std::string& file);

/// The same of a file. Throws Error also if it cannot be read, is no regular file or is longer than
/// 256 MiB.
Result read_result(const std::string& path);

/// The contents of a file: an answer of offload-bench, if it is one, and results.
struct ResultFile {
  std::string verdict;  ///< "equal", "slower", ...; empty: the file is a result of offload-client
  std::string sentence;
  std::vector<Result>
      results;  ///< of an answer: of each load and target, whose names are in `file`
};

/// parse_result() and read_result() of either kind of file.
ResultFile parse_result_file(std::string_view text, const std::string& file);
ResultFile read_result_file(const std::string& path);

}  // namespace offload::results
