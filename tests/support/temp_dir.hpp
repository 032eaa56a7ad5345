#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/error.hpp"

namespace offload::support {

/// A directory of this test alone, removed at the end with all that is in it.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "offload-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) core::throw_errno("mkdtemp " + pattern);
    path_ = pattern;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace offload::support
