#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace offload::core {

/// Bytes of a stranger's text that are shown; longer texts are a nuisance or an attack.
inline constexpr std::size_t kLongestShown = 256;

/// Returns `text` in a form that is safe in a log or on a terminal: text from a peer could forge
/// lines, or move the cursor of the reader. Printable UTF-8 stays as it is. Escapes control
/// characters (ESC, newlines, C1), characters that change the direction of a line or end it
/// (Unicode's Bidi_Control, U+2028, U+2029), bytes that are not UTF-8 and the backslash, as \x1b or
/// \u{202e}. Text longer than kLongestShown bytes is cut and ends in "...".
std::string escaped(std::string_view text);

/// Does the same for text of many lines, such as JSON or metrics: keeps its length, newlines, tabs
/// and backslashes. Escapes the other characters of escaped() as \u001b, which is the same
/// character in JSON, and replaces a byte that is not UTF-8 by \ufffd.
std::string printable(std::string_view text);

}  // namespace offload::core
