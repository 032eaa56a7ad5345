#include <unistd.h>

#include <utility>

#include "apps/rdma_tasks/device/rings.hpp"
#include "rdma/mlx5/card_queue_pair.hpp"
#include "rdma/path/pairing.hpp"

namespace offload::rdma_tool {
namespace {

/// The interval of polls for a doorbell in memory, which wakes no thread.
constexpr core::Duration kRelayInterval = std::chrono::microseconds(50);

/// Memory of the lanes' launcher, from the beginning of a page on.
struct PagedMemory {
  PagedMemory(LaneLauncher& launcher, std::size_t length)
      : page(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        range(launcher.allocate(length + page)),
        bytes(
            range.address + (page - reinterpret_cast<std::uintptr_t>(range.address) % page) % page,
            length) {}

  std::size_t page;
  memory::Range range;
  std::span<std::byte> bytes;
};

/// Rings that an mlx5 card reads. Turns of the engine relay the doorbell, unless a GPU rings it.
class CardLaneRings final : public LaneRings, progress::Pollable {
 public:
  explicit CardLaneRings(const LaneRingParts& parts)
      : environment_(parts.environment),
        memory_(parts.environment.lanes(), rdma::mlx5::arena_bytes(parts.sizes)),
        pairing_(parts.environment.device(), parts.options),
        card_(parts.environment.device(), parts.environment.objects().domain, parts.sizes,
              seen_memory()),
        queues_(environment_.lanes().register_mapper() ? card_.device() : card_.host()) {
    card_.queue_pair().initialize(parts.options.port_num, parts.options.access, 0,
                                  parts.options.pkey_index);
  }
  ~CardLaneRings() override {
    if (!std::exchange(running_, false)) return;
    environment_.engine().deactivate(*this);
  }

  [[nodiscard]] const rdma::QueuePairMemory& queues() const noexcept override { return queues_; }
  [[nodiscard]] rdma::ConnectionDescriptor descriptor() const override {
    return pairing_.describe(card_.queue_pair());
  }
  void connect_to(const rdma::ConnectionDescriptor& peer) override {
    pairing_.connect(card_.queue_pair(), peer);
    running_ = true;
    environment_.engine().activate(*this);
  }
  [[nodiscard]] std::string carrier() const override {
    const bool by_gpu = card_.ringer() == rdma::mlx5::DoorbellRinger::gpu;
    return environment_.device().name() + " itself carries them out, " +
           (by_gpu ? "the GPU" : "a thread") + " rings its register " +
           (card_.combines_writes() ? "with" : "without") + " write combining" +
           (card_.why_refused().empty() ? "" : " (refused: " + card_.why_refused() + ")") +
           (why_relayed_.empty() ? "" : ", because the GPU cannot: " + why_relayed_);
  }

 private:
  [[nodiscard]] rdma::mlx5::SeenMemory seen_memory() {
    auto mapper = environment_.lanes().register_mapper();
    if (!mapper) return {memory_.bytes, nullptr, {}};
    const auto map = [this, mapper = std::move(mapper)](void* address) {
      try {
        return mapper(address);
      } catch (const core::Error& error) {
        why_relayed_ = error.what();
        throw;
      }
    };
    return {memory_.bytes, memory_.bytes.data(), map};
  }
  bool poll() override { return card_.relay(); }
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::from_thread;
  }
  core::Duration arm() override { return kRelayInterval; }
  void disarm() override {}

  Environment& environment_;
  PagedMemory memory_;
  std::string why_relayed_;  ///< why the GPU does not ring the register
  rdma::Pairing pairing_;
  rdma::mlx5::CardQueuePair card_;
  rdma::QueuePairMemory queues_;
  bool running_ = false;
};

}  // namespace

std::unique_ptr<LaneRings> make_card_rings(const LaneRingParts& parts) {
  if (parts.options.queues.qp_type != rdma::QpType::rc) {
    throw core::Error(core::ErrorCode::not_supported, "rings of a card need --transport rc");
  }
  return std::make_unique<CardLaneRings>(parts);
}

}  // namespace offload::rdma_tool
