#include <cstring>
#include <list>
#include <utility>
#include <vector>

#include "rdma/mlx5/devx_queue_pair.hpp"
#include "tests/kernels/rdma/model_card.hpp"
#include "tests/softcard/loopback_path.hpp"

/// The interface of the model, with the device that the real libmlx5 drives behind it: so the tests
/// that are written for the model run on the software card, unchanged. How rude it is does not
/// depend on the seed, but on the options of the program.
namespace offload::kernels::rdma::test {
namespace {

namespace mlx5 = offload::rdma::mlx5;

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                     IBV_ACCESS_REMOTE_ATOMIC;

}  // namespace

struct ModelCard::State {
  std::uint32_t add(void* bytes, std::size_t size, int access) {
    memory.emplace_back(offload::rdma::check_pointer(
                            (ibv_reg_mr)(domain.get(), bytes, size, access), "register memory"),
                        "memory");
    return memory.back()->lkey;  // the card's key for remote use has the same value
  }

  offload::rdma::DeviceContext device{"mlx5_0"};
  offload::rdma::ProtectionDomain domain{device};
  std::vector<offload::rdma::Handle<ibv_mr, ibv_dereg_mr>> memory;
  std::list<mlx5::DevxQueuePair> pairs;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> connections;
  bool fails_without_receive = false;
};

ModelCard::ModelCard(std::uint32_t) : state_(std::make_unique<State>()) {}

ModelCard::~ModelCard() = default;

std::size_t ModelCard::bytes_for(std::uint32_t blocks, std::uint32_t receives) {
  return mlx5::DevxQueuePair::bytes_of({blocks, receives}) + mlx5::kRingAlignment;
}

std::uint32_t ModelCard::add_memory(void* bytes, std::size_t size) {
  return state_->add(bytes, size, kAll);
}

std::uint32_t ModelCard::add_readable(void* bytes, std::size_t size) {
  return state_->add(bytes, size, IBV_ACCESS_REMOTE_READ);
}

ModelPair ModelCard::add(void* memory, std::uint32_t blocks, std::uint32_t receives,
                         bool has_record) {
  const offload::rdma::QueueSizes sizes{blocks, receives};
  const auto content = mlx5::DevxQueuePair::first_content(sizes);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  void* const base = static_cast<std::byte*>(memory) +
                     (mlx5::kRingAlignment - begin % mlx5::kRingAlignment) % mlx5::kRingAlignment;
  std::memcpy(base, content.data(), content.size());
  auto& pair = state_->pairs.emplace_back(state_->device, state_->domain, sizes,
                                          mlx5::QueueSpace{base, content.size()},
                                          mlx5::DevxQueuePair::Options{.has_record = has_record});
  const auto queues = pair.seen_at(base, pair.card_register());
  return {queues.send, queues.receive};
}

void ModelCard::connect(const ModelPair& one, const ModelPair& other) {
  state_->connections.emplace_back(one.send.number, other.send.number);
  state_->connections.emplace_back(other.send.number, one.send.number);
}

void ModelCard::set_fail_without_receive() {
  state_->fails_without_receive = true;
}

/// Until then the queue pairs are not connected, and the card ignores their doorbells.
void ModelCard::start() {
  for (const auto& [from, to] : state_->connections) {
    auto rtr = offload::rdma::loopback_path(state_->device, to);
    rtr.min_rnr_timer = 1;  // 10 us
    offload::rdma::RtsAttributes rts;
    rts.rnr_retry = state_->fails_without_receive ? 0 : 7;
    for (auto& pair : state_->pairs) {
      if (pair.number() == from) pair.connect(rtr, rts);
    }
  }
}

/// Returns nothing: the card is a process, which reports a fault only as a completion with an
/// error.
std::string ModelCard::stop() {
  return {};
}

}  // namespace offload::kernels::rdma::test
