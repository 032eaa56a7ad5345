#include "tests/kernels/rdma/model_card.hpp"

#include <atomic>
#include <span>
#include <thread>

#include "softcard/card/card.hpp"

namespace offload::kernels::rdma::test {

struct ModelCard::State {
  offload::rdma::model::Card card;
  std::atomic<bool> ends{false};
  std::thread thread;
};

ModelCard::ModelCard(std::uint32_t seed) : state_(std::make_unique<State>()) {
  if (seed != kPolite) state_->card.set_rude(seed);
}

ModelCard::~ModelCard() {
  stop();
}

std::size_t ModelCard::bytes_for(std::uint32_t blocks, std::uint32_t receives) {
  return offload::rdma::queue_memory_bytes({blocks, receives});
}

std::uint32_t ModelCard::add_memory(void* bytes, std::size_t size) {
  return state_->card.register_memory({static_cast<std::byte*>(bytes), size}, {true, true, true});
}

std::uint32_t ModelCard::add_readable(void* bytes, std::size_t size) {
  return state_->card.register_memory({static_cast<std::byte*>(bytes), size}, {.read = true});
}

ModelPair ModelCard::add(void* memory, std::uint32_t blocks, std::uint32_t receives,
                         bool has_record) {
  const std::span bytes(static_cast<std::byte*>(memory), bytes_for(blocks, receives));
  auto queues = offload::rdma::lay_out_queues(bytes, {blocks, receives}, 1);
  queues.send.has_record = has_record;
  queues.send.number = state_->card.add(queues);
  return {queues.send, queues.receive};
}

ModelPair ModelCard::add_raw(void* memory, std::uint32_t blocks, std::uint32_t receives,
                             std::uint32_t least_inline) {
  const std::span bytes(static_cast<std::byte*>(memory), bytes_for(blocks, receives));
  auto queues = offload::rdma::lay_out_queues(bytes, {blocks, receives}, 1);
  queues.send.number = state_->card.add_raw(queues, least_inline);
  return {queues.send, queues.receive};
}

void ModelCard::connect(const ModelPair& one, const ModelPair& other) {
  state_->card.connect(one.send.number, other.send.number);
}

void ModelCard::set_fail_without_receive() {
  state_->card.set_fail_without_receive(true);
}

void ModelCard::start() {
  state_->thread = std::thread([this] {
    while (!state_->ends.load(std::memory_order_relaxed)) {
      if (!state_->card.progress()) std::this_thread::yield();
    }
  });
}

std::string ModelCard::stop() {
  state_->ends = true;
  if (state_->thread.joinable()) state_->thread.join();
  return state_->card.fault();
}

}  // namespace offload::kernels::rdma::test
