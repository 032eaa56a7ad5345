#pragma once

#include <string>

namespace offload::comch {

/// The folder of this user's control sockets where no path is given, which is no other user's to
/// write to: $OFFLOAD_RUNTIME_DIR, which may be made later; $XDG_RUNTIME_DIR if that is one; else
/// /run/dpu-gpu-offload for root and /tmp/dpu-gpu-offload-UID for others, which
/// make_runtime_folder() makes.
std::string runtime_folder();

/// If `path` is in runtime_folder(): makes the folder where it is not there. Throws Error:
/// not_permitted for one that another user made or may write to, or the system's.
void make_runtime_folder(const std::string& path);
/// The same for who connects there: makes nothing, as without the folder there is no server yet.
void check_runtime_folder(const std::string& path);

}  // namespace offload::comch
