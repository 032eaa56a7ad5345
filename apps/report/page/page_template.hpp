#pragma once

namespace offload::report {

/// page.html, which CMake embeds: the page with {{policy}}, {{title}} and {{body}} to be filled in.
extern const char* const kPageTemplate;

}  // namespace offload::report
