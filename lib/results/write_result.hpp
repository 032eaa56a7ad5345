#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "results/result.hpp"

namespace offload::results {

/// `result` as JSON of format 1.
nlohmann::ordered_json result_json(const Result& result);

/// The same as the text of a file.
std::string result_text(const Result& result);

}  // namespace offload::results
