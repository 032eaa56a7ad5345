#pragma once

#include <string>

#include "backend/backend.hpp"

namespace offload::worker {

/// How responses are posted to a server on another machine.
struct DataPath {
  bool by_backend = false;  ///< itself, by RDMA writes into the server's slots; else a thread sends
  std::string why;          ///< for the log
};

/// Returns the meaning of `option` (--data-path) for a back end and a server at `comch`. Throws
/// Error: not_supported for gpu with a back end that does not post.
DataPath choose_data_path(const std::string& option, const std::string& comch,
                          const backend::Backend& backend);

/// After an attachment with `path` was refused for `reason`, perhaps as a device of either end has
/// no atomic operations: changes it to the one that is left for `option`. False: there is none.
bool fall_back(DataPath& path, const std::string& option, const std::string& reason);

}  // namespace offload::worker
