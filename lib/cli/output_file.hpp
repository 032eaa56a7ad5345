#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace offload::cli {

/// A file for a program's results: checked before the run, so that a wrong path shows at once and
/// not after an hour of load, and written whole at its end: beside its place, then renamed, so that
/// what was there stays until the new one is complete. One thread.
class OutputFile {
 public:
  /// `path`: empty for no file, and write() does nothing; "-" for standard output. `marker`: text
  /// that identifies a file of this program, which may be overwritten, in its first 4 KiB, ignoring
  /// blanks; empty for any file. Throws Error: already_exists for a file without it.
  OutputFile(std::string path, const std::string& option, std::string_view marker);
  /// Discards data that was appended and not committed.
  ~OutputFile();
  OutputFile& operator=(OutputFile&&) = delete;

  [[nodiscard]] bool wanted() const noexcept { return !path_.empty(); }
  [[nodiscard]] bool is_standard_output() const noexcept { return path_ == "-"; }

  /// Appends data to the new contents. Throws Error; the old contents then remain, as with
  /// commit().
  void append(std::string_view text);
  /// Puts what was appended in its place.
  void commit();
  void write(std::string_view text) {
    append(text);
    commit();
  }

 private:
  class Writer;

  std::string path_;
  std::unique_ptr<Writer> writer_;  ///< from the first append() until commit()
};

}  // namespace offload::cli
