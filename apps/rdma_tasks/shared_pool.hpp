#pragma once

#include <unordered_map>
#include <vector>

#include "apps/rdma_tasks/endpoint.hpp"
#include "apps/rdma_tasks/options.hpp"
#include "progress/task_pool.hpp"
#include "rdma_tasks/shared_receives.hpp"
#include "tasks/memory/inventory.hpp"

namespace offload::rdma_tool {

/// The receives that all endpoints share, with their memory. One thread.
class SharedPool {
 public:
  /// Posts as many receives as the endpoints would have unshared. Throws Error.
  SharedPool(Environment& environment, const Options& options)
      : region_({"shared receives", memory::kLocalAccess},
                {memory::allocate_range(count_of(options) * receive_room(options))}),
        inventory_(count_of(options)),
        shared_(environment.objects().domain, environment.registrar(),
                environment.objects().completions, static_cast<std::uint32_t>(count_of(options))),
        tasks_(shared_, count_of(options),
               {[](rdma::SharedReceiveTask& task, void* pool) {
                  Endpoint* const endpoint = static_cast<SharedPool*>(pool)->endpoint_of(task);
                  if (endpoint != nullptr) endpoint->received(task);
                },
                [](rdma::SharedReceiveTask& task, void* pool) {
                  Endpoint* const endpoint = static_cast<SharedPool*>(pool)->endpoint_of(task);
                  if (endpoint != nullptr) endpoint->failed(task);
                },
                this}) {
    region_.add_registrar(environment.registrar());
    region_.start();
    inventory_.start();
    shared_.connect(environment.engine());
    shared_.start();
    const std::size_t room = receive_room(options);
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      buffers_.push_back(
          inventory_.take(region_, {region_.ranges()[0].address + i * room, room}).buffer);
      rdma::SharedReceiveTask& task = *tasks_.allocate();
      task.destination = buffers_.back().get();
      if (!shared_.submit_unflushed(task).ok()) {
        throw core::Error(core::ErrorCode::unexpected, "a shared receive was not accepted");
      }
    }
    static_cast<void>(shared_.flush());  // errors end the tasks
  }
  SharedPool& operator=(SharedPool&&) = delete;
  ~SharedPool() {
    if (shared_.state() != progress::Context::State::idle) shared_.stop();
  }

  [[nodiscard]] const rdma::SharedReceiveQueue* queue() const noexcept { return shared_.queue(); }
  /// Passes receives of a queue pair, which is not connected yet, to its endpoint.
  void add(std::uint32_t qp_num, Endpoint& endpoint) { endpoints_.emplace(qp_num, &endpoint); }
  void remove(const Endpoint& endpoint) noexcept {
    std::erase_if(endpoints_, [&](const auto& entry) { return entry.second == &endpoint; });
  }
  core::Status post(rdma::SharedReceiveTask& task) noexcept { return shared_.submit(task); }

 private:
  static std::size_t count_of(const Options& options) noexcept {
    return receives_of(options) * options.connections;
  }
  Endpoint* endpoint_of(const rdma::SharedReceiveTask& task) const noexcept {
    const auto found = endpoints_.find(task.qp_num());
    return found == endpoints_.end() ? nullptr : found->second;
  }

  memory::MemoryRegion region_;
  memory::BufferInventory inventory_;
  std::vector<memory::BufferRef> buffers_;
  rdma::SharedReceives shared_;
  progress::TaskPool<rdma::SharedReceiveTask> tasks_;
  std::unordered_map<std::uint32_t, Endpoint*> endpoints_;
};

}  // namespace offload::rdma_tool
