#include "apps/samples/sample_card.hpp"

#include <atomic>
#include <span>
#include <thread>

#include "core/process/thread.hpp"
#include "softcard/card/card.hpp"

namespace offload::samples {

struct SampleCard::State {
  rdma::model::Card model;
  std::atomic<bool> stop{false};  // relaxed: the join orders
  std::thread thread;
};

SampleCard::SampleCard() : state_(std::make_unique<State>()) {}

SampleCard::~SampleCard() {
  stop();
}

std::uint32_t SampleCard::register_memory(void* memory, std::size_t bytes) {
  return state_->model.register_memory({static_cast<std::byte*>(memory), bytes},
                                       {.read = true, .write = true, .atomic = true});
}

std::size_t SampleCard::queue_bytes(std::uint32_t blocks, std::uint32_t receives) {
  return rdma::queue_memory_bytes({blocks, receives});
}

WorkQueues SampleCard::add_queue(void* memory, std::uint32_t blocks, std::uint32_t receives) {
  const std::span room(static_cast<std::byte*>(memory), queue_bytes(blocks, receives));
  rdma::QueuePairMemory queues = rdma::lay_out_queues(room, {blocks, receives}, 0);
  queues.send.number = state_->model.add(queues);
  return {queues.send, queues.receive};
}

void SampleCard::connect(const WorkQueues& one, const WorkQueues& other) {
  state_->model.connect(one.send.number, other.send.number);
}

void SampleCard::start() {
  state_->thread = core::start_thread("card", [this] {
    while (!state_->stop.load(std::memory_order_relaxed)) {
      if (!state_->model.progress()) std::this_thread::yield();
    }
  });
}

std::string SampleCard::stop() {
  state_->stop.store(true, std::memory_order_relaxed);
  if (state_->thread.joinable()) state_->thread.join();
  return state_->model.fault();
}

}  // namespace offload::samples
