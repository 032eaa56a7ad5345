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

/// Whether it is a folder, and not a link to one, that is this user's alone.
bool is_private(const std::string& folder) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
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
    core::throw_errno("cannot make the folder " + folder);
  }
  check_runtime_folder(path);
}

void check_runtime_folder(const std::string& path) {
  const std::string folder = runtime_folder();
  if (!is_in(path, folder) || ::access(folder.c_str(), F_OK) != 0 || is_private(folder)) return;
  throw core::Error(core::ErrorCode::not_permitted,
                    folder +
                        " is not a folder of this user's alone (chmod 700), so others could "
                        "take the server's place: choose another place with --comch unix:PATH");
}

}  // namespace offload::comch
