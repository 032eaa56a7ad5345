#pragma once

#include <string>
#include <vector>

#include "core/fd.hpp"
#include "core/signals.hpp"

namespace offload::worker {

/// A new folder that only this user may enter, below $TMPDIR, else /tmp. Removed at the end with
/// its contents; links are removed, not followed.
class PrivateFolder {
 public:
  /// Throws Error.
  PrivateFolder();
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// The folder itself, whatever its path leads to by now.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// A file in it, opened for reading: no link, and this user's own. Throws Error.
  [[nodiscard]] core::Fd open_file(const std::string& name) const;

 private:
  std::string path_;
  core::Fd fd_;
};

struct CompilerRun {
  /// How it ended, in words: "exit status 1"; empty if all went well.
  std::string failure;
  /// Its output, 64 KiB at most.
  std::string output;
};

/// Runs a compiler in `folder`, without a shell, in English, and waits for its end: for three
/// minutes at most. `command`: its path and its arguments. Whatever it started is gone when this
/// returns or throws. Throws Error where it cannot be started, and core::Interrupted.
CompilerRun run_compiler(const std::vector<std::string>& command, const PrivateFolder& folder,
                         core::Signals& signals);

}  // namespace offload::worker
