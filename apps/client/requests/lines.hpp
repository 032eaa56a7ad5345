#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <utility>

namespace offload::client {

/// The lines of a text file that say something: without comments (from '#' on), and without those
/// that are empty. One thread.
class Lines {
 public:
  /// `text`: must outlive it. `name`: its file's, for errors.
  Lines(std::istream& text, std::string name) : text_(text), name_(std::move(name)) {}

  /// The next one, without blanks at its ends; valid until the next call. False at the end. Throws
  /// Error if the file cannot be read on.
  bool next(std::string_view& line);
  /// Throws Error (bad_message): "'NAME', line N: `what`", for the line that next() gave.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::istream& text_;
  std::string name_;
  std::string line_;
  std::size_t number_ = 0;
};

}  // namespace offload::client
