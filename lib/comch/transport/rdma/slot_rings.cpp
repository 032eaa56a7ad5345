#include "comch/transport/rdma/slot_rings.hpp"

#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "rdma/proxy/proxy.hpp"
#include "rdma/verbs/completion_loop.hpp"

namespace offload::comch {
namespace {

/// The interval of checks whether the proxy has stopped.
constexpr core::Duration kStopInterval = std::chrono::microseconds(50);

class ProxyRings final : public SlotRings {
 public:
  ProxyRings(const RingParts& parts, OnFailed on_failed)
      : SlotRings(rdma::queue_memory_bytes(parts.sizes())),
        parts_(parts),
        // The proxy may have as many entries in flight as fit in its rings and the device.
        completions_(parts.adapter.device, parts.engine, parts.blocks + 1),
        pair_(parts.domain, completions_.queue(), completions_.queue(),
              slot_pair_options(parts.sends, 1)),
        queues_(rdma::lay_out_queues(bytes(), parts.sizes(), pair_.qp_num())),
        proxy_(
            {parts.domain, completions_, pair_}, queues_,
            [failed = std::move(on_failed)](rdma::Proxy&, const core::Error& why) {
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
    proxy_.connect(parts_.engine);
    proxy_.start();
    proxy_.start_sends();
  }
  /// Takes at most the time that the proxy gives a device for its outstanding completions.
  void stop() override {
    if (proxy_.state() != progress::Context::State::running) return;
    proxy_.stop();
    while (proxy_.state() == progress::Context::State::stopping) {
      parts_.engine.run_once(core::Clock::now() + kStopInterval);
    }
  }

 private:
  RingParts parts_;
  rdma::CompletionLoop completions_;
  rdma::QueuePair pair_;
  rdma::QueuePairMemory queues_;
  rdma::Proxy proxy_;
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
    core::log_warning("{} does not read rings itself, a proxy does: {}",
                      parts.adapter.device.name(), error.what());
  }
  return std::make_unique<ProxyRings>(parts, on_failed);
}

}  // namespace offload::comch
