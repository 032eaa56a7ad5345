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

/// Revocation lists have some 40 bytes for each certificate; of a longer file only this much is
/// compared.
constexpr std::size_t kMostCompared = std::size_t{64} << 20;

/// Adds bytes to a digest of FNV-1a.
std::size_t digest_with(std::size_t digest, std::string_view bytes) noexcept {
  for (const char byte : bytes)
    digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return digest;
}

/// Returns a digest of a file's content, or of the reason why it cannot be read. The file may be a
/// key, so no byte of it stays in memory.
std::size_t digest_of(const std::string& path) {
  std::size_t digest = 0xcbf29ce484222325;
  try {
    const std::string action = "cannot read '" + path + "'";
    const core::Fd file = core::open_regular_file(path, action);
    std::array<char, 4096> piece;
    ssize_t count = 0;
    for (std::size_t taken = 0; taken < kMostCompared; taken += static_cast<std::size_t>(count)) {
      count = ::read(file.get(), piece.data(), piece.size());
      if (count <= 0) break;
      digest = digest_with(digest, {piece.data(), static_cast<std::size_t>(count)});
    }
    ::explicit_bzero(piece.data(), piece.size());
    core::check_errno(count, action);
  } catch (const core::Error& error) {
    digest = digest_with(digest, error.what());
  }
  return digest;
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
