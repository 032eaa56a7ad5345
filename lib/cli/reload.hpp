#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace offload::cli {

/// Rereads the files of a program at SIGHUP, each with a function that reads it. Reads and checks
/// all of them before it changes anything, so that an invalid one changes nothing. One thread.
class Reload {
 public:
  /// The data that was read.
  struct Change {
    std::function<void()> apply;      ///< cannot fail
    std::vector<std::string> what{};  ///< for the log, such as "spin 0us -> 50us"
  };
  /// Reads and checks, and changes nothing. Throws Error that says what is wrong.
  using Read = std::function<Change()>;

  void add(Read read) { sources_.push_back(std::move(read)); }

  /// Rereads all of it, and logs what has changed. Returns whether nothing was wrong; the log says
  /// what was.
  bool run() const;

 private:
  std::vector<Read> sources_;
};

/// Files by their paths, with a digest of the content of each.
using FileDigests = std::map<std::string, std::size_t>;

/// Reads the files; an empty path is not one, and a file that cannot be read has a digest, too: its
/// reader reports the error.
FileDigests digests_of(const std::vector<std::string>& paths);

/// Returns "the content of PATH" for each file that differs. It never shows the content, which may
/// be a key.
std::vector<std::string> changed_files(const FileDigests& before, const FileDigests& now);

}  // namespace offload::cli
