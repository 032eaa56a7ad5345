#include "packets/card_port.hpp"

#include <fmt/core.h>

#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "packets/image.hpp"

namespace offload::packets {
namespace {

using kernels::packets::CardQueue;
using kernels::packets::CardReceives;
using kernels::packets::FrameRing;
using kernels::packets::RingOrder;
using kernels::rdma::SharedSendState;

constexpr std::uint32_t kHomes = 2;  ///< to receive into, and to send
/// The send queue has room for frames that were received, too.
constexpr std::uint32_t kBlocksPerFrame = 2;

/// The offsets of the parts of an image. Each part begins at a cache line.
class CardImageLayout {
  std::size_t end_ = 0;  // before the offsets, which count it up

 public:
  explicit CardImageLayout(std::uint32_t frames)
      : blocks(kBlocksPerFrame * frames), receives(frames) {}

  const std::uint32_t blocks;
  const std::uint32_t receives;
  const std::size_t queue = take<CardQueue>(1);
  const std::size_t homes = take<FrameRing>(kHomes);
  const std::size_t orders = take<RingOrder>(kHomes);
  const std::size_t send_state = take<SharedSendState>(1);
  const std::size_t receive_state = take<CardReceives>(1);
  const std::size_t marks = take<std::uint64_t>(blocks);
  const std::size_t sent = take<std::uint64_t>(blocks);
  const std::size_t posted = take<std::uint64_t>(receives);
  const std::size_t words = take<RingWords>(kHomes);
  const std::size_t entries = take<std::uint64_t>(std::size_t{kHomes} * receives);
  [[nodiscard]] std::size_t end() const noexcept { return end_; }

 private:
  template <class T>
  std::size_t take(std::size_t count) {
    const std::size_t at = end_;
    end_ += (count * sizeof(T) + 63) / 64 * 64;
    return at;
  }
};

rdma::QueueSizes sizes_for(const FrameMemory& memory) {
  const FrameSizes& sizes = memory.sizes();
  constexpr std::uint32_t kMostFrames = rdma::kMostEntries / kBlocksPerFrame;
  if (sizes.homes != kHomes || sizes.frames_per_home > kMostFrames) {
    throw core::Error(
        core::ErrorCode::invalid_value,
        fmt::format("a card's port with {} frames for each of {} homes; it needs 2 homes, with at "
                    "most {} frames each",
                    sizes.frames_per_home, sizes.homes, kMostFrames));
  }
  return {kBlocksPerFrame * sizes.frames_per_home, sizes.frames_per_home};
}

/// Returns how much of a frame the card wants inline. ConnectX-4 and its kinds want the header of
/// Ethernet; their device numbers end at 4118 (drivers/net/ethernet/mellanox/mlx5/core/main.c).
std::uint32_t inline_bytes_for(const rdma::DeviceContext& device) {
  constexpr std::uint32_t kLastConnectX4 = 4118;
  const bool wants = device.attributes().vendor_part_id <= kLastConnectX4;
  return wants ? kernels::rdma::kMostInlineHeader : 0;
}

ibv_mr* register_frames(const rdma::ProtectionDomain& domain, const FrameMemory& memory) {
  const auto bytes = memory.bytes();
  return rdma::check_pointer(
      (ibv_reg_mr)(domain.get(), bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE),
      fmt::format("register {} bytes of frames", bytes.size()));
}

}  // namespace

std::size_t CardPort::ring_bytes(const FrameMemory& memory) {
  return rdma::mlx5::arena_bytes(sizes_for(memory));
}

CardPort::CardPort(const rdma::DeviceContext& device, const rdma::ProtectionDomain& domain,
                   const FrameMemory& memory, rdma::mlx5::SeenMemory rings,
                   rdma::mlx5::CardTraffic traffic)
    : memory_(memory),
      region_(register_frames(domain, memory), "the memory of frames"),
      pair_(device, domain, sizes_for(memory), std::move(rings), traffic),
      inline_bytes_(inline_bytes_for(device)) {}

std::size_t CardPort::image_bytes() const noexcept {
  return CardImageLayout(memory_.sizes().frames_per_home).end();
}

std::vector<std::byte> CardPort::image_for(std::byte* at, std::byte* frames,
                                           const rdma::QueuePairMemory& rings) const {
  const FrameSizes& sizes = memory_.sizes();
  const std::uint32_t count = sizes.frames_per_home;
  const CardImageLayout layout(count);
  std::vector<std::byte> bytes(layout.end());
  const auto here = [&bytes](auto* type, std::size_t offset) {
    return reinterpret_cast<decltype(type)>(bytes.data() + offset);
  };
  const auto there = [at](auto* type, std::size_t offset) {
    return reinterpret_cast<decltype(type)>(at + offset);
  };
  std::uint64_t* const numbers = nullptr;
  FrameRing* const rings_of = nullptr;
  RingOrder* const orders = nullptr;
  RingWords* const words = nullptr;
  for (std::uint32_t home = 0; home < kHomes; ++home) {
    const std::size_t entries = layout.entries + std::size_t{home} * count * sizeof(std::uint64_t);
    for (std::uint32_t i = 0; i < count; ++i) {
      here(numbers, entries)[i] = (std::uint64_t{home} * count + i) * sizes.frame_bytes;
    }
    here(words, layout.words)[home] = {count, 0, 0};
    here(orders, layout.orders)[home] = {count, count, 0, 0};
    RingWords* const placed = there(words, layout.words) + home;
    here(rings_of, layout.homes)[home] = {
        {there(numbers, entries), &placed->producer, &placed->consumer, &placed->flags, count - 1},
        there(orders, layout.orders) + home};
  }
  const FrameRing* const homes = here(rings_of, layout.homes);
  CardQueue queue{};
  queue.send = {rings.send, there(static_cast<SharedSendState*>(nullptr), layout.send_state),
                there(numbers, layout.marks)};
  queue.sent = there(numbers, layout.sent);
  queue.receive = rings.receive;
  queue.receives = there(static_cast<CardReceives*>(nullptr), layout.receive_state);
  queue.posted = there(numbers, layout.posted);
  queue.fill = homes[0];
  queue.free_frames = homes[1];
  queue.frames = {reinterpret_cast<std::uint8_t*>(frames), there(rings_of, layout.homes),
                  sizes.frame_bytes, count, kHomes};
  queue.card_address = reinterpret_cast<std::uint64_t>(memory_.bytes().data());
  queue.lkey = region_->lkey;
  queue.inline_bytes = inline_bytes_;
  std::memcpy(bytes.data() + layout.queue, &queue, sizeof queue);
  return bytes;
}

HostCardQueue::HostCardQueue(const CardPort& port)
    : lines_(port.image_bytes() / sizeof(ImageLine)) {
  auto* const at = reinterpret_cast<std::byte*>(lines_.data());
  const auto made = port.image_for(at, port.frames(), port.queue_pair().host());
  std::memcpy(at, made.data(), made.size());
}

}  // namespace offload::packets
