#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace offload::core {

/// Bytes of a stranger's text that are shown; longer texts are a nuisance or an attack.
inline constexpr std::size_t kLongestShown = 256;

/// `text` as it may be shown in a log or on a terminal: what came from somebody else could forge
/// lines, or move the cursor of who reads them. Printable UTF-8 stays as it is. Escaped are control
/// characters (ESC, newlines, C1), what changes the direction of a line or ends it (Unicode's
/// Bidi_Control, U+2028, U+2029), bytes that are no UTF-8 and the backslash itself, as \x1b or
/// \u{202e}. What is longer than kLongestShown bytes is cut and ends in "...".
std::string escaped(std::string_view text);

/// The same for text of many lines that a person or a program reads, such as JSON or metrics: all
/// of it, with its newlines, tabs and backslashes. Escaped is the rest of what escaped() does not
/// show, as \u001b, which in JSON is the same character; for a byte that is no UTF-8 stands \ufffd.
std::string printable(std::string_view text);

}  // namespace offload::core
