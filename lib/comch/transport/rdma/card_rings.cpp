#include <utility>

#include "comch/transport/rdma/slot_rings.hpp"
#include "rdma/mlx5/card.hpp"
#include "rdma/mlx5/card_queue_pair.hpp"

namespace offload::comch {
namespace {

/// The interval of checks for a failed queue: there is no report, because only the back end polls
/// its completions.
constexpr core::Duration kStateInterval = std::chrono::milliseconds(100);
/// The interval of polls for a doorbell in memory, which wakes no thread.
constexpr core::Duration kRelayInterval = std::chrono::microseconds(50);

/// Rings that an mlx5 card reads. The thread of the engine relays the doorbell to it, unless a GPU
/// rings the card's register.
class CardRings final : public SlotRings, progress::Pollable {
 public:
  CardRings(const RingParts& parts, OnFailed on_failed)
      : SlotRings(rdma::mlx5::arena_bytes(parts.sizes())),
        parts_(parts),
        on_failed_(std::move(on_failed)),
        card_(parts.adapter.device, parts.domain, parts.sizes(), {bytes(), nullptr, {}}) {
    if (card_.why_refused().empty()) return;
    parts.adapter.log_once(core::LogLevel::info, parts.adapter.device.name() +
                                                     " refuses a register with write combining (" +
                                                     card_.why_refused() +
                                                     "): doorbells use one without");
  }

  [[nodiscard]] rdma::QueuePair& pair() noexcept override { return card_.queue_pair(); }
  [[nodiscard]] const kernels::rdma::SendQueue& sends() const noexcept override {
    return card_.host().send;
  }
  [[nodiscard]] std::uint64_t* card_register() const noexcept override {
    return card_.card_register();
  }
  [[nodiscard]] std::string carrier() const override {
    return parts_.adapter.device.name() + " itself carries that out";
  }
  void start() override {
    running_ = true;
    next_query_ = parts_.engine.now() + kStateInterval;
    parts_.engine.activate(*this);
  }
  /// Makes the card flush posted entries; later entries reach the time limit of their wait.
  void stop() override {
    if (!std::exchange(running_, false)) return;
    parts_.engine.deactivate(*this);
    pair().fail();
    static_cast<void>(card_.relay());
  }

 private:
  bool poll() override {
    const bool worked = card_.relay();
    const core::TimePoint now = parts_.engine.now();
    if (now >= next_query_) {
      next_query_ = now + kStateInterval;
      look_at_state();
    }
    return worked;
  }
  void look_at_state() {
    try {
      if (pair().query().qp_state != IBV_QPS_ERR) return;
      on_failed_(pair().described() + " is in error: a write failed, or the peer has gone");
    } catch (const core::Error& error) {
      on_failed_(error.what());
    }
  }
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::from_device;
  }
  core::Duration arm() override { return kRelayInterval; }
  void disarm() override {}

  RingParts parts_;
  OnFailed on_failed_;
  rdma::mlx5::CardQueuePair card_;
  bool running_ = false;
  core::TimePoint next_query_;
};

}  // namespace

std::unique_ptr<SlotRings> make_card_rings(const RingParts& parts, SlotRings::OnFailed on_failed) {
  if (!rdma::mlx5::drives(parts.adapter.device)) return nullptr;
  return std::make_unique<CardRings>(parts, std::move(on_failed));
}

}  // namespace offload::comch
