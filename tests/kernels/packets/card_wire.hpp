#pragma once

#include "tests/kernels/packets/card_end.hpp"
#include "tests/kernels/packets/far_end.hpp"

/// The same as RingWire for a card's queue, whose card is the model.
namespace offload::kernels::packets::test {

/// A queue pair of the groups, and its peer on the wire, which a thread of the host owns.
template <class Place>
class CardWire {
 public:
  static constexpr std::uint32_t kFrameBytes = TestFrames<Place>::kFrameBytes;

  explicit CardWire(std::uint32_t frames, std::uint32_t inline_bytes = 0,
                    std::uint32_t seed = rdma::test::ModelCard::kPolite)
      : card_(seed), near_(card_, frames, inline_bytes), far_(card_) {
    card_.connect(near_.pair(), far_.pair());
  }
  CardWire(const CardWire&) = delete;
  CardWire& operator=(const CardWire&) = delete;
  ~CardWire() {
    turns_.end();
    card_.stop();
  }

  [[nodiscard]] const CardQueue& queue() const { return near_.queue(); }

  void add(Bytes packet) { far_.add(std::move(packet)); }
  void start() {
    card_.start();
    turns_.begin(
        [this] {
          const bool sent = far_.send_next();
          return far_.take() || sent;
        },
        [this] { return far_.came().size() >= expected_ && !far_.take(); });
  }
  /// Returns once all sent packets have reached the peer. The card continues, and completes them.
  void drain(std::size_t expected = 0) {
    expected_ = expected;
    turns_.end();
  }
  std::string stop() { return card_.stop(); }
  [[nodiscard]] const std::vector<Bytes>& sent() const { return far_.came(); }
  [[nodiscard]] std::uint32_t frames_at_home() const { return near_.frames_at_home(); }

 private:
  rdma::test::ModelCard card_;
  CardEnd<Place> near_;
  FarEnd far_;
  std::atomic<std::size_t> expected_{0};
  Turns turns_;
};

}  // namespace offload::kernels::packets::test
