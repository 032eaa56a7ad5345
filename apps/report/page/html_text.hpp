#pragma once

#include <string>
#include <string_view>

namespace offload::report {

/// Returns an untrusted text as HTML, for an element or a quoted attribute: escaped as by
/// core::escaped() for a terminal, cut after 256 bytes, and without HTML's own characters.
std::string html_text(std::string_view text);

/// `words` as a line of a shell, as HTML: those with special characters are quoted.
std::string html_command(std::string_view word);

/// The source expression of Content-Security-Policy that allows exactly this style or script:
/// 'sha256-...'. Throws Error.
std::string policy_hash(std::string_view text);

}  // namespace offload::report
