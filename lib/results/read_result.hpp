#pragma once

#include <string>
#include <string_view>

#include "results/result.hpp"

namespace offload::results {

/// Parses the result in `text`, which is untrusted; `file` names it in errors. Throws Error
/// (bad_message) of one line, with file and field, for a text that is not a result of format 1.
/// Unknown fields are ignored.
Result parse_result(std::string_view text, const std::string& file);

/// The same of a file. Throws Error also if it cannot be read, is no regular file or is longer than
/// 256 MiB.
Result read_result(const std::string& path);

}  // namespace offload::results
