#pragma once

#include <string>

#include "backend/backend.hpp"
#include "core/error.hpp"

namespace offload::worker {

/// How responses are posted to a server on another machine.
struct DataPath {
  bool by_backend = false;  ///< itself, by RDMA writes into the server's slots; else a thread sends
  std::string why;          ///< for the log
};

/// Returns the meaning of `option` (--data-path) for a back end and a server at `comch`. Throws
/// Error: not_supported for gpu with a back end that does not post.
inline DataPath choose_data_path(const std::string& option, const std::string& comch,
                                 const backend::Backend& backend) {
  if (option == "gpu" && !backend.posts_responses()) {
    throw core::Error(
        core::ErrorCode::not_supported,
        "--data-path gpu: the back end " + backend.name() + " does not post responses");
  }
  if (option != "auto") return {option == "gpu", "--data-path " + option};
  if (!comch.starts_with("rdma:")) return {false, "auto: --comch does not begin with rdma:"};
  if (!backend.posts_responses()) return {false, "auto: this back end cannot post responses"};
  // Threads that ring are of a CPU: they would do what the one that sends does, no faster.
  if (backend.wakeup() == channel::Wakeup::doorbell) {
    return {false, "auto: this back end has no GPU to post responses"};
  }
  return {true, "auto: the GPU can post responses"};
}

/// After an attachment with `path` was refused for `reason`, perhaps as a device of either end has
/// no atomic operations: changes it to the one that is left for `option`. False: there is none.
inline bool fall_back(DataPath& path, const std::string& option, const std::string& reason) {
  if (!path.by_backend || option != "auto") return false;
  path = {false, "auto: refused with gpu: " + reason};
  return true;
}

}  // namespace offload::worker
