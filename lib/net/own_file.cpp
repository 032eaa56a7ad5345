#include "net/own_file.hpp"

#include <unistd.h>

#include "core/error.hpp"

namespace offload::net {

bool remove_same_file(const std::string& path, const struct stat& file) noexcept {
  struct stat now {};
  return ::lstat(path.c_str(), &now) == 0 && now.st_dev == file.st_dev &&
         now.st_ino == file.st_ino && ::unlink(path.c_str()) == 0;
}

OwnFile::OwnFile(std::string path) : path_(std::move(path)) {
  core::check_errno(::lstat(path_.c_str(), &file_), "cannot get the status of " + path_);
}

}  // namespace offload::net
