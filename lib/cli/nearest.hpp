#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace offload::cli {

/// Returns the names that a user may have meant by `word`, the likeliest first, three at most:
/// those that a few letters make of it, those that begin with it, and those that have it as one of
/// their parts between dashes.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& names);

/// Returns "; did you mean --port or --path?", or nothing if no name is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

}  // namespace offload::cli
