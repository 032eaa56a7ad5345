#include "apps/samples/sample_card.hpp"

#include <atomic>
#include <cstdlib>
#include <span>
#include <thread>

#include "apps/samples/card_kind.hpp"
#include "core/process/thread.hpp"
#include "rdma/mlx5/arena.hpp"
#include "softcard/card/card.hpp"

namespace offload::samples {
namespace {

class ModelKind final : public SampleCard::Kind {
 public:
  std::uint32_t register_memory(std::span<std::byte> memory) override {
    return model_.register_memory(memory, {.read = true, .write = true, .atomic = true});
  }
  WorkQueues add_queue(std::span<std::byte> memory, const rdma::QueueSizes& sizes) override {
    rdma::QueuePairMemory queues = rdma::lay_out_queues(memory, sizes, 0);
    queues.send.number = model_.add(queues);
    return {queues.send, queues.receive};
  }
  void connect(std::uint32_t one, std::uint32_t other) override { model_.connect(one, other); }
  bool progress() override { return model_.progress(); }
  std::string fault() override { return model_.fault(); }

 private:
  rdma::model::Card model_;
};

std::unique_ptr<SampleCard::Kind> make_kind() {
  const char* const device = std::getenv("OFFLOAD_SAMPLE_CARD");
  if (device != nullptr) return make_real_kind(device);
  return std::make_unique<ModelKind>();
}

}  // namespace

struct SampleCard::State {
  std::unique_ptr<Kind> kind = make_kind();
  std::atomic<bool> stop{false};  // relaxed: the join orders
  std::thread thread;
};

SampleCard::SampleCard() : state_(std::make_unique<State>()) {}

SampleCard::~SampleCard() {
  stop();
}

std::uint32_t SampleCard::register_memory(void* memory, std::size_t bytes) {
  return state_->kind->register_memory({static_cast<std::byte*>(memory), bytes});
}

std::size_t SampleCard::queue_bytes(std::uint32_t blocks, std::uint32_t receives) {
  return rdma::mlx5::arena_bytes({blocks, receives}) + kPageBytes;
}

WorkQueues SampleCard::add_queue(void* memory, std::uint32_t blocks, std::uint32_t receives) {
  const std::span room(static_cast<std::byte*>(memory), queue_bytes(blocks, receives));
  return state_->kind->add_queue(room, {blocks, receives});
}

void SampleCard::connect(const WorkQueues& one, const WorkQueues& other) {
  state_->kind->connect(one.send.number, other.send.number);
}

void SampleCard::start() {
  state_->thread = core::start_thread("card", [this] {
    while (!state_->stop.load(std::memory_order_relaxed)) {
      if (!state_->kind->progress()) std::this_thread::yield();
    }
  });
}

std::string SampleCard::stop() {
  state_->stop.store(true, std::memory_order_relaxed);
  if (state_->thread.joinable()) state_->thread.join();
  return state_->kind->fault();
}

}  // namespace offload::samples
