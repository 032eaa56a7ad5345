#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/packets/answers.hpp"
#include "packets/card_port.hpp"
#include "packets/card_rule.hpp"
#include "tests/kernels/packets/frame_maker.hpp"
#include "tests/rdma/mlx5/page.hpp"

/// A port of a card as one thread uses it, with any card behind it.
namespace offload::packets::test {

using Bytes = std::vector<std::uint8_t>;
using kernels::packets::test::FrameKind;
using kernels::packets::test::FrameMaker;

/// Makes a frame for an Ethernet address and a port of UDP or TCP, with right checksums.
inline Bytes frame_for(const std::uint8_t (&ethernet)[6], std::uint16_t port,
                       const FrameKind& kind = {.payload = 64}) {
  Bytes frame = FrameMaker::make(kind);
  std::memcpy(frame.data(), ethernet, sizeof ethernet);
  const auto length = static_cast<std::uint32_t>(frame.size());
  const auto headers = kernels::packets::parse_headers(frame.data(), length);
  std::uint8_t* const transport = frame.data() + headers.transport;
  // The sum of the two ports stays, and with it the checksum.
  const std::uint32_t sum = headers.source_port + headers.destination_port + 0xffff - port;
  kernels::packets::store_16(transport, sum % 0xffff);
  kernels::packets::store_16(transport + 2, port);
  return frame;
}

/// A frame that was received, with the card's checks.
struct CameFrame {
  Bytes bytes;
  std::uint64_t time = 0;
  bool ip_is_right = false;
  bool transport_is_right = false;
};

class CardStation {
 public:
  /// `look`: gives a card time that has no thread or process.
  CardStation(
      const rdma::DeviceContext& device, const rdma::ProtectionDomain& domain,
      rdma::mlx5::CardTraffic traffic = rdma::mlx5::CardTraffic::frames,
      std::function<void()> look = [] {})
      : rings_(CardPort::ring_bytes(memory_) / sizeof(rdma::mlx5::Page) + 1),
        port_(device, domain, memory_, {std::as_writable_bytes(std::span(rings_)), nullptr, {}},
              traffic),
        threads_(port_),
        look_(std::move(look)) {
    take(0);  // posts frames to receive into
  }

  /// Sends a frame; `checksums` of rdma::ChecksumFlag, which the card writes. Returns whether the
  /// queue took it.
  bool send(const Bytes& frame, std::uint32_t checksums = 0) {
    std::uint64_t address = 0;
    Deadline deadline;
    while (kernels::packets::take_frames(kGroup, queue().free_frames, 1, address) == 0) {
      kernels::packets::recycle(kGroup, queue(), kAtOnce);
      turn();
      if (deadline.is_over()) return false;
    }
    std::memcpy(queue().frames.bytes + address, frame.data(), frame.size());
    const kernels::packets::FrameDescriptor packet{
        address, static_cast<std::uint32_t>(frame.size()), checksums};
    const auto sent = kernels::packets::send(kGroup, queue(), true, packet, kAtOnce);
    turn();
    return sent == kernels::rdma::WorkResult::done;
  }
  /// Waits until all frames that were sent are back. Returns whether they are.
  bool finish_sends() {
    const auto& ring = queue().free_frames.ring;
    Deadline deadline;
    while (*ring.producer - *ring.consumer != kFrames && !deadline.is_over()) {
      turn();
      kernels::packets::recycle(kGroup, queue(), kAtOnce);
    }
    return *ring.producer - *ring.consumer == kFrames;
  }
  /// Waits until that many frames came. Returns all that came, also more.
  std::vector<CameFrame> take(std::size_t count) {
    std::vector<CameFrame> came;
    Deadline deadline;
    while (came.size() < count && !deadline.is_over()) take_once(came);
    take_once(came);
    return came;
  }
  /// Answers UDP datagrams to `port`. Ends after `count` answers, or after the answer to a frame of
  /// `last` bytes. Returns the number of answers.
  std::uint32_t echo(std::uint16_t port, std::uint32_t count, std::uint32_t last = 0,
                     std::chrono::seconds patience = kPatience) {
    std::uint32_t answered = 0;
    bool ends = false;
    Deadline deadline(patience);
    while (answered < count && !ends && !deadline.is_over()) {
      const auto batch = kernels::packets::receive(kGroup, queue(), received_, kBatch, kAtOnce);
      const auto result = kernels::packets::finish(
          kGroup, queue(), queue(), received_, batch, kAtOnce,
          [&](const kernels::packets::EthernetFrame& frame) {
            const auto headers = kernels::packets::parse_frame(frame.data, frame.length);
            if (!kernels::packets::make_udp_echo(frame.data, headers, port)) {
              return kernels::packets::Verdict::drop;
            }
            ++answered;
            ends = ends || frame.length == last;
            return kernels::packets::Verdict::send;
          });
      if (result != kernels::rdma::WorkResult::done) break;
      kernels::packets::recycle(kGroup, queue(), kAtOnce);
      turn();
    }
    return answered;
  }

  [[nodiscard]] const CardPort& port() const noexcept { return port_; }
  [[nodiscard]] const kernels::packets::CardQueue& queue() const { return threads_.queue(); }
  static constexpr std::uint32_t kFrames = 64;

 private:
  static constexpr kernels::SingleLane kGroup{};
  static constexpr kernels::rdma::WaitLimit kAtOnce{0};
  static constexpr std::uint32_t kBatch = 16;
  static constexpr std::chrono::seconds kPatience{60};

  class Deadline {
   public:
    explicit Deadline(std::chrono::seconds patience = kPatience)
        : end_(std::chrono::steady_clock::now() + patience) {}
    [[nodiscard]] bool is_over() const { return std::chrono::steady_clock::now() > end_; }

   private:
    std::chrono::steady_clock::time_point end_;
  };

  void turn() {
    port_.relay();
    look_();
  }
  void take_once(std::vector<CameFrame>& came) {
    turn();
    const auto batch = kernels::packets::receive(kGroup, queue(), received_, kBatch, kAtOnce);
    static_cast<void>(kernels::packets::finish(
        kGroup, queue(), queue(), received_, batch, kAtOnce,
        [&came](const kernels::packets::EthernetFrame& frame) {
          came.push_back({Bytes(frame.data, frame.data + frame.length), frame.time,
                          frame.ip_is_right, frame.transport_is_right});
          return kernels::packets::Verdict::drop;
        }));
  }

  FrameMemory memory_{{.homes = 2, .frames_per_home = kFrames, .frame_bytes = 2048}};
  std::vector<rdma::mlx5::Page> rings_;
  CardPort port_;
  HostCardQueue threads_;
  std::function<void()> look_;
  std::uint32_t received_ = 0;
};

}  // namespace offload::packets::test
