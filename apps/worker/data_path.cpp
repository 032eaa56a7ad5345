#include "apps/worker/data_path.hpp"

#include "core/error.hpp"

namespace offload::worker {

DataPath choose_data_path(const std::string& option, const std::string& comch,
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

bool fall_back(DataPath& path, const std::string& option, const std::string& reason) {
  if (!path.by_backend || option != "auto") return false;
  path = {false, "auto: refused with gpu: " + reason};
  return true;
}

}  // namespace offload::worker
