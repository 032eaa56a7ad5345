#include "apps/rdma_tasks/device/rings.hpp"

#include "core/log.hpp"
#include "rdma/emulator/queue_emulator.hpp"

namespace offload::rdma_tool {
namespace {

/// The time to stop an emulator, or a connection: flushing takes 2 s at most.
constexpr core::Duration kRingsStopTime = std::chrono::milliseconds(2500);

class ProxyLaneRings final : public LaneRings {
 public:
  explicit ProxyLaneRings(const LaneRingParts& parts)
      : environment_(parts.environment),
        connection_(parts.environment.objects(), parts.options, parts.name),
        memory_(parts.environment.lanes().allocate(rdma::queue_memory_bytes(parts.sizes))) {
    connection_.connect(environment_.engine());
    connection_.start();
    const rdma::QueuePair& pair = *connection_.queue_pair();
    queues_ = rdma::lay_out_queues({memory_.address, memory_.length}, parts.sizes, pair.qp_num());
    const auto objects = environment_.objects();
    emulator_.emplace(
        rdma::QueueEmulatorParts{objects.domain, objects.completions, pair}, queues_,
        [this](rdma::QueueEmulator&, const core::Error& why) { environment_.fail(why); },
        parts.name);
    emulator_->connect(environment_.engine());
    emulator_->start();
  }
  ~ProxyLaneRings() override {
    if (emulator_) emulator_->stop_within(kRingsStopTime);
    emulator_.reset();
    connection_.stop_within(kRingsStopTime);
  }

  [[nodiscard]] const rdma::QueuePairMemory& queues() const noexcept override { return queues_; }
  [[nodiscard]] rdma::ConnectionDescriptor descriptor() const override {
    return connection_.descriptor();
  }
  void connect_to(const rdma::ConnectionDescriptor& peer) override {
    connection_.connect_to(peer);
    emulator_->start_sends();
  }
  [[nodiscard]] std::string carrier() const override {
    return "a thread carries them out on " + environment_.device().name();
  }

 private:
  Environment& environment_;
  rdma::Connection connection_;
  memory::Range memory_;
  rdma::QueuePairMemory queues_{};
  std::optional<rdma::QueueEmulator> emulator_;
};

}  // namespace

std::unique_ptr<LaneRings> make_proxy_rings(const LaneRingParts& parts) {
  return std::make_unique<ProxyLaneRings>(parts);
}

std::unique_ptr<LaneRings> make_rings(const LaneRingParts& parts, Rings choice) {
  std::unique_ptr<LaneRings> rings;
  std::string why = "--rings proxy";
  if (choice == Rings::card) {
    rings = make_card_rings(parts);
  } else if (choice == Rings::automatic) {
    try {
      rings = make_card_rings(parts);
    } catch (const core::Error& error) {
      why = error.what();
    }
  }
  if (rings != nullptr) {
    core::log_info("{}: entries of the lanes: {}", parts.name, rings->carrier());
    return rings;
  }
  rings = make_proxy_rings(parts);
  core::log_info("{}: entries of the lanes: {} ({})", parts.name, rings->carrier(), why);
  return rings;
}

}  // namespace offload::rdma_tool
