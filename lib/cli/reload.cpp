#include "cli/reload.hpp"

#include <unistd.h>

#include <array>
#include <exception>
#include <functional>
#include <string_view>

#include "core/error.hpp"
#include "core/escape.hpp"
#include "core/fd.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"

namespace offload::cli {
namespace {

std::size_t digest_of(const std::string& path) {
  std::string text;
  try {
    const core::Fd file = core::open_regular_file(path, "cannot read '" + path + "'");
    std::array<char, 4096> piece;
    ssize_t count = 0;
    while ((count = ::read(file.get(), piece.data(), piece.size())) > 0) {
      text.append(piece.data(), static_cast<std::size_t>(count));
    }
  } catch (const core::Error& error) {
    text = error.what();
  }
  return std::hash<std::string_view>{}(text);
}

}  // namespace

bool Reload::run() const {
  std::vector<Change> changes;
  std::string what;
  try {
    for (const Read& read : sources_) {
      changes.push_back(read());
      for (const std::string& each : changes.back().what) what += (what.empty() ? "" : ", ") + each;
    }
  } catch (const std::exception& error) {
    core::log_error("SIGHUP: nothing was changed: {}", core::what_of(error));
    return false;
  }
  for (const Change& change : changes) change.apply();
  core::log_info("SIGHUP: settings and keys were reread: {}",
                 what.empty() ? "nothing changed" : std::string_view(what));
  return true;
}

FileDigests digests_of(const std::vector<std::string>& paths) {
  FileDigests digests;
  for (const std::string& path : paths) {
    if (!path.empty()) digests[path] = digest_of(path);
  }
  return digests;
}

std::vector<std::string> changed_files(const FileDigests& before, const FileDigests& now) {
  std::vector<std::string> changed;
  for (const auto& [path, digest] : now) {
    const auto old = before.find(path);
    if (old == before.end() || old->second != digest) {
      changed.push_back("the content of " + core::escaped(path));
    }
  }
  return changed;
}

}  // namespace offload::cli
