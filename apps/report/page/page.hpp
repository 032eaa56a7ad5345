#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/report/result/result.hpp"

namespace offload::report {

/// What a page begins with, blanks aside.
inline constexpr std::string_view kPageMarker =
    "<!doctype html>\n<!-- a page of offload-report -->";

/// Results as a page that needs nothing else. What comes from a result is escaped, and the page's
/// policy lets a browser run its own script alone. Throws Error (bad_message) for a histogram that
/// is none.
std::string make_page(const std::vector<Result>& results);

}  // namespace offload::report
