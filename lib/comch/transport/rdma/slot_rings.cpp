#include "comch/transport/rdma/slot_rings.hpp"

#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "rdma/emulator/queue_emulator.hpp"
#include "rdma/verbs/completion_loop.hpp"

namespace offload::comch {
namespace {

/// The interval of checks whether the emulator has stopped.
constexpr core::Duration kStopInterval = std::chrono::microseconds(50);

class EmulatorRings final : public SlotRings {
 public:
  EmulatorRings(const RingParts& parts, OnFailed on_failed)
      : SlotRings(rdma::queue_memory_bytes(parts.sizes())),
        parts_(parts),
        // The emulator may have as many entries in flight as fit in its rings and the device.
        completions_(parts.adapter.device, parts.engine, parts.blocks + 1),
        pair_(parts.domain, completions_.queue(), completions_.queue(),
              slot_pair_options(parts.sends, 1)),
        queues_(rdma::lay_out_queues(bytes(), parts.sizes(), pair_.qp_num())),
        emulator_(
            {parts.domain, completions_, pair_}, queues_,
            [failed = std::move(on_failed)](rdma::QueueEmulator&, const core::Error& why) {
              failed(why.what());
            },
            "slots") {}
  [[nodiscard]] rdma::QueuePair& pair() noexcept override { return pair_; }
  [[nodiscard]] const kernels::rdma::SendQueue& sends() const noexcept override {
    return queues_.send;
  }
  [[nodiscard]] std::string carrier() const override {
    return "a thread carries that out on " + parts_.adapter.device.name();
  }
  void start() override {
    emulator_.connect(parts_.engine);
    emulator_.start();
    emulator_.start_sends();
  }
  /// Takes at most the time that the emulator gives a device for its outstanding completions.
  void stop() override {
    if (emulator_.state() != progress::Context::State::running) return;
    emulator_.stop();
    while (emulator_.state() == progress::Context::State::stopping) {
      parts_.engine.run_once(core::Clock::now() + kStopInterval);
    }
  }

 private:
  RingParts parts_;
  rdma::CompletionLoop completions_;
  rdma::QueuePair pair_;
  rdma::QueuePairMemory queues_;
  rdma::QueueEmulator emulator_;
};

}  // namespace

rdma::QueuePairOptions slot_pair_options(std::uint32_t sends, std::uint32_t receives) noexcept {
  rdma::QueuePairOptions options;
  options.max_send_wr = sends;
  options.max_recv_wr = receives;
  options.max_sge = 1;
  options.max_inline_data = sizeof(kernels::Packet);
  return options;
}

std::unique_ptr<SlotRings> make_slot_rings(const RingParts& parts,
                                           const SlotRings::OnFailed& on_failed) {
  try {
    if (auto rings = make_card_rings(parts, on_failed)) return rings;
  } catch (const core::Error& error) {
    parts.adapter.log_once(core::LogLevel::warning,
                           parts.adapter.device.name() +
                               " does not read rings itself, an emulator does: " + error.what());
  }
  return std::make_unique<EmulatorRings>(parts, on_failed);
}

}  // namespace offload::comch
