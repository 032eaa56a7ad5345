#pragma once

#include <string>

namespace offload::comch {

/// Returns the default folder of this user's control sockets, to which other users cannot write:
/// $OFFLOAD_RUNTIME_DIR, which may be created later; $XDG_RUNTIME_DIR if it is private; else
/// /run/dpu-gpu-offload for root and /tmp/dpu-gpu-offload-UID for others, which
/// make_runtime_folder() creates.
std::string runtime_folder();

/// Creates runtime_folder() if `path` is in it and it does not exist. Throws Error: not_permitted
/// for one that another user made or may write to, or an error of the system.
void make_runtime_folder(const std::string& path);
/// Checks the same for a client, and creates nothing: without the folder there is no server yet.
void check_runtime_folder(const std::string& path);

}  // namespace offload::comch
