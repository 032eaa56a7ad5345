#pragma once

#include <unordered_map>
#include <vector>

#include "apps/rdma/endpoint.hpp"
#include "apps/rdma/options.hpp"
#include "memory/inventory.hpp"
#include "progress/task_pool.hpp"
#include "rdma/connection/shared_receives.hpp"

namespace offload::rdma_tool {

/// The receives of all endpoints, with their memory, where the endpoints share them. One thread.
class SharedPool {
 public:
  /// As many as the endpoints would have, posted. Throws Error.
  SharedPool(Environment& environment, const Options& options);
  SharedPool(const SharedPool&) = delete;
  SharedPool& operator=(const SharedPool&) = delete;
  ~SharedPool();

  [[nodiscard]] const rdma::SharedReceiveQueue* queue() const noexcept { return shared_.queue(); }
  /// `endpoint` is told of what comes for that queue pair, from before it is connected on.
  void add(std::uint32_t queue_pair, Endpoint& endpoint) {
    endpoints_.emplace(queue_pair, &endpoint);
  }
  void remove(const Endpoint& endpoint) noexcept;
  core::Status post(rdma::SharedReceiveTask& task) noexcept { return shared_.submit(task); }

 private:
  using Tasks = progress::TaskPool<rdma::SharedReceiveTask>;

  Endpoint* endpoint_of(const rdma::SharedReceiveTask& task) const noexcept;

  memory::MemoryRegion region_;
  memory::BufferInventory inventory_;
  std::vector<memory::BufferRef> buffers_;
  rdma::SharedReceives shared_;
  Tasks tasks_;
  std::unordered_map<std::uint32_t, Endpoint*> endpoints_;
};

}  // namespace offload::rdma_tool
