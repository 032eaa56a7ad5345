#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/report/result/result.hpp"

namespace offload::report {

/// Merges run `number` of all results, which are of one kind of load. Throws Error if they did not
/// run at the same time; adds to `warnings` if they did so in part.
Run merge_runs(const std::vector<Result>& results, std::size_t number,
               std::vector<std::string>& warnings);

/// Puts the host in front, once: a merged result, of hosts "a, b", has one of them there already.
std::string with_host(const Result& result, const std::string& text);

/// Throws the Error (invalid_value): "'a.json' and 'b.json' `why`".
[[noreturn]] void refuse_merge(const Result& one, const Result& other, const std::string& why);

}  // namespace offload::report
