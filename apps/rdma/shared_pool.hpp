#pragma once

#include <unordered_map>
#include <vector>

#include "apps/rdma/options.hpp"
#include "apps/rdma/wire.hpp"
#include "memory/inventory.hpp"
#include "progress/task_pool.hpp"
#include "rdma/connection/shared_receives.hpp"

namespace offload::rdma_tool {

/// The receives of all wires, with their memory, where the wires share them. One thread.
class SharedPool {
 public:
  /// As many as the wires would have, posted. Throws Error.
  SharedPool(Stage& stage, const Options& options);
  SharedPool(const SharedPool&) = delete;
  SharedPool& operator=(const SharedPool&) = delete;
  ~SharedPool();

  [[nodiscard]] const rdma::SharedReceiveQueue* queue() const noexcept { return shared_.queue(); }
  /// `wire` is told of what comes for that queue pair, from before it is connected on.
  void add(std::uint32_t queue_pair, Wire& wire) { wires_.emplace(queue_pair, &wire); }
  void remove(const Wire& wire) noexcept;
  core::Status post(rdma::SharedReceiveTask& task) noexcept { return shared_.submit(task); }

 private:
  using Tasks = progress::TaskPool<rdma::SharedReceiveTask>;

  Wire* wire_of(const rdma::SharedReceiveTask& task) const noexcept;

  memory::MemoryRegion region_;
  memory::BufferInventory inventory_;
  std::vector<memory::BufferRef> buffers_;
  rdma::SharedReceives shared_;
  Tasks tasks_;
  std::unordered_map<std::uint32_t, Wire*> wires_;
};

}  // namespace offload::rdma_tool
