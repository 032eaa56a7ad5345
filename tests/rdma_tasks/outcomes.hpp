#pragma once

#include <string>
#include <utility>
#include <vector>

#include "progress/task_pool.hpp"
#include "rdma_tasks/connection.hpp"

namespace offload::rdma {

/// How tasks ended, in order: "ok", "io_failed", ...
struct Outcomes {
  template <class T>
  typename progress::TaskPool<T>::Callbacks callbacks() {
    const auto note = [](T& task, void* user_data) {
      auto& outcomes = *static_cast<Outcomes*>(user_data);
      outcomes.all.emplace_back(task.status().ok() ? "ok" : core::name_of(task.status().error()));
      if (outcomes.to_stop != nullptr) std::exchange(outcomes.to_stop, nullptr)->stop();
    };
    return {note, note, this};
  }
  std::vector<std::string> all;
  progress::Context* to_stop = nullptr;  ///< by the next callback
};

using Lines = std::vector<std::string>;

}  // namespace offload::rdma
