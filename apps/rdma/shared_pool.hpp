#pragma once

#include <unordered_map>
#include <vector>

#include "apps/rdma/endpoint.hpp"
#include "apps/rdma/options.hpp"
#include "progress/task_pool.hpp"
#include "rdma_tasks/shared_receives.hpp"
#include "tasks/memory/inventory.hpp"

namespace offload::rdma_tool {

/// The receives that all endpoints share, with their memory. One thread.
class SharedPool {
 public:
  /// Posts as many receives as the endpoints would have unshared. Throws Error.
  SharedPool(Environment& environment, const Options& options);
  SharedPool& operator=(SharedPool&&) = delete;
  ~SharedPool();

  [[nodiscard]] const rdma::SharedReceiveQueue* queue() const noexcept { return shared_.queue(); }
  /// Passes receives of a queue pair, which is not connected yet, to its endpoint.
  void add(std::uint32_t qp_num, Endpoint& endpoint) { endpoints_.emplace(qp_num, &endpoint); }
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
