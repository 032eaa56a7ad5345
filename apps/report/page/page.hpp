#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/report/vocabulary.hpp"

namespace offload::report {

/// The beginning of a page, apart from blanks.
inline constexpr std::string_view kPageMarker =
    "<!doctype html>\n<!-- a page of offload-report -->";

/// An answer of offload-bench: its verdict and its sentence.
struct ShownAnswer {
  std::string verdict;
  std::string sentence;
};

/// Returns results as a page without other files; its first banners are `answers`. Texts from a
/// result are escaped, and the page's policy lets a browser run only the page's script. Throws
/// Error (bad_message) for an invalid histogram.
std::string make_page(const std::vector<Result>& results,
                      const std::vector<ShownAnswer>& answers = {});

}  // namespace offload::report
