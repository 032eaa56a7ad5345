#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/client/options.hpp"
#include "apps/client/run/campaign.hpp"

namespace offload::client {

/// A command's outcome as JSON, format 1, which docs/reference/load-client.md describes field by
/// field and offload-report reads. `command_line`: its words. `failure`: what ended it before its
/// time; empty if nothing did.
nlohmann::ordered_json make_json(const Options& options, const Campaign& campaign,
                                 const std::vector<std::string>& command_line,
                                 const std::string& failure);

}  // namespace offload::client
