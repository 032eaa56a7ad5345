#include "comch/transport/local/runtime_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"

namespace offload::comch {
namespace {

constexpr mode_t kOwnersAlone = 0700;

/// Returns why `folder` is not private to this user; empty if it is.
std::string why_not_private(const std::string& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) return core::describe_errno(errno);
  if (!S_ISDIR(status.st_mode)) return "it is not a folder";
  if (status.st_uid != ::geteuid()) {
    return "it belongs to user " + std::to_string(status.st_uid) + ", not to user " +
           std::to_string(::geteuid());
  }
  return (status.st_mode & (S_IRWXG | S_IRWXO)) == 0 ? "" : "others have access (chmod 700)";
}

bool is_private(const std::string& folder) {
  return why_not_private(folder).empty();
}

bool is_in(const std::string& path, const std::string& folder) {
  return path.substr(0, path.rfind('/')) == folder;
}

}  // namespace

std::string runtime_folder() {
  const char* const ours = std::getenv("OFFLOAD_RUNTIME_DIR");
  if (ours != nullptr && std::string_view(ours).starts_with('/')) return ours;
  const char* const given = std::getenv("XDG_RUNTIME_DIR");
  if (given != nullptr && std::string_view(given).starts_with('/') && is_private(given)) {
    return given;
  }
  const auto user = ::geteuid();
  return user == 0 ? "/run/dpu-gpu-offload" : "/tmp/dpu-gpu-offload-" + std::to_string(user);
}

void make_runtime_folder(const std::string& path) {
  const std::string folder = runtime_folder();
  if (!is_in(path, folder)) return;
  if (::mkdir(folder.c_str(), kOwnersAlone) != 0 && errno != EEXIST) {
    core::throw_errno("cannot create the folder " + folder);
  }
  check_runtime_folder(path);
}

void check_runtime_folder(const std::string& path) {
  const std::string folder = runtime_folder();
  struct stat status {};
  if (!is_in(path, folder) || ::lstat(folder.c_str(), &status) != 0) return;  // a link also counts
  const std::string why = why_not_private(folder);
  if (why.empty()) return;
  throw core::Error(core::ErrorCode::not_permitted,
                    folder + " is not private to this user: " + why +
                        ". Another user could impersonate the server there. Remove it, or set "
                        "OFFLOAD_RUNTIME_DIR for server and worker to a folder that is private to "
                        "this user, or choose another path with --comch unix:PATH");
}

}  // namespace offload::comch
