#pragma once

#include <fmt/core.h>

#include <istream>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace offload::client {

inline constexpr std::string_view kBlanks = " \t\r";

inline std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

/// The lines of a text file that say something: without comments (from '#' on), and without those
/// that are empty. One thread.
class Lines {
 public:
  /// `text`: must outlive it. `name`: its file's, for errors.
  Lines(std::istream& text, std::string name) : text_(text), name_(std::move(name)) {}

  /// The next one, without blanks at its ends; valid until the next call. False at the end. Throws
  /// Error if the file cannot be read on.
  bool next(std::string_view& line) {
    while (std::getline(text_, line_)) {
      ++number_;
      line = trimmed(std::string_view(line_).substr(0, line_.find('#')));
      if (!line.empty()) return true;
    }
    if (text_.bad()) core::throw_errno("cannot read '" + name_ + "'");
    return false;
  }
  /// Throws Error (bad_message): "'NAME', line N: `what`", for the line that next() gave.
  [[noreturn]] void fail(const std::string& what) const {
    throw core::Error(core::ErrorCode::bad_message,
                      fmt::format("'{}', line {}: {}", name_, number_, what));
  }

 private:
  std::istream& text_;
  std::string name_;
  std::string line_;
  std::size_t number_ = 0;
};

}  // namespace offload::client
