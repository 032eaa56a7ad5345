#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "core/error.hpp"

namespace offload::net {

/// Removes `path` if that is still the file which `file` was read of (device and inode). Returns
/// whether it did.
inline bool remove_same_file(const std::string& path, const struct stat& file) noexcept {
  struct stat now {};
  return ::lstat(path.c_str(), &now) == 0 && now.st_dev == file.st_dev &&
         now.st_ino == file.st_ino && ::unlink(path.c_str()) == 0;
}

/// A file that this process has made, such as that of a UNIX socket. The destructor removes it, but
/// not a file with which another program has replaced it. Must be destroyed before the object that
/// keeps the file open: until then no other file gets its inode.
class OwnFile {
 public:
  /// The file that is at `path` now. Throws Error if there is none.
  explicit OwnFile(std::string path) : path_(std::move(path)) {
    core::check_errno(::lstat(path_.c_str(), &file_), "cannot get the status of " + path_);
  }
  /// The file at `path` that `file` was read of.
  OwnFile(std::string path, const struct stat& file) : path_(std::move(path)), file_(file) {}
  OwnFile& operator=(OwnFile&&) = delete;
  ~OwnFile() { remove_same_file(path_, file_); }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  struct stat file_ {};
};

}  // namespace offload::net
