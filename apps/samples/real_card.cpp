#include <infiniband/verbs.h>

#include <map>
#include <memory>
#include <vector>

#include "apps/samples/card_kind.hpp"
#include "core/error.hpp"
#include "rdma/mlx5/card_queue_pair.hpp"
#include "rdma/path/pairing.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::samples {
namespace {

constexpr memory::Access kAccess = memory::kLocalAccess | memory::kRemoteAccess;

/// An mlx5 card, which reads the queues itself. The thread relays their doorbells.
class RealKind final : public SampleCard::Kind {
 public:
  explicit RealKind(const std::string& device) : device_(device), domain_(device_) {}

  std::uint32_t register_memory(std::span<std::byte> memory) override {
    constexpr int kFlags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    const auto& made = regions_.emplace_back(
        rdma::check_pointer((ibv_reg_mr)(domain_.get(), memory.data(), memory.size(), kFlags),
                            "register memory of a sample"),
        "memory of a sample");
    if (made.get()->lkey != made.get()->rkey) {
      throw core::Error(core::ErrorCode::not_supported, "the card has two keys for memory");
    }
    return made.get()->lkey;
  }
  WorkQueues add_queue(std::span<std::byte> memory, const rdma::QueueSizes& sizes) override {
    const std::size_t skipped = -reinterpret_cast<std::uintptr_t>(memory.data()) & (kPageBytes - 1);
    auto pair = std::make_unique<rdma::mlx5::CardQueuePair>(
        device_, domain_, sizes, rdma::mlx5::SeenMemory{memory.subspan(skipped), nullptr, {}});
    pair->queue_pair().initialize(1, kAccess);
    const rdma::QueuePairMemory& queues = pair->host();
    pairs_.emplace(queues.send.number, std::move(pair));
    return {queues.send, queues.receive};
  }
  void connect(std::uint32_t one, std::uint32_t other) override {
    rdma::QueuePair& here = pairs_.at(one)->queue_pair();
    rdma::QueuePair& there = pairs_.at(other)->queue_pair();
    rdma::Pairing own(device_, {});
    rdma::Pairing peers(device_, {});
    const rdma::ConnectionDescriptor of_here = own.describe(here);
    if (one == other) return own.connect(here, of_here);
    own.connect(here, peers.describe(there));
    peers.connect(there, of_here);
  }
  bool progress() override {
    bool worked = false;
    for (auto& [number, pair] : pairs_) worked = pair->relay() || worked;
    return worked;
  }
  std::string fault() override {
    for (auto& [number, pair] : pairs_) {
      if (pair->queue_pair().query().qp_state == IBV_QPS_ERR) {
        return pair->queue_pair().described() + " is in error";
      }
    }
    return {};
  }

 private:
  rdma::DeviceContext device_;
  rdma::ProtectionDomain domain_;
  std::vector<rdma::Handle<ibv_mr, ibv_dereg_mr>> regions_;
  std::map<std::uint32_t, std::unique_ptr<rdma::mlx5::CardQueuePair>> pairs_;
};

}  // namespace

std::unique_ptr<SampleCard::Kind> make_real_kind(const std::string& device) {
  return std::make_unique<RealKind>(device);
}

}  // namespace offload::samples
