#include "packets/image.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace offload::packets {
namespace {

using kernels::packets::FrameRing;
using kernels::packets::Queue;
using kernels::packets::Ring;
using kernels::packets::RingOrder;

constexpr std::size_t lines(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

/// The offset of each part: counted from 0 by the constructor of Image, and written by made_for().
struct Image::Writer {
  const Image& image;
  std::byte* at;
  const SeenAt& seen_at;
  std::vector<std::byte> bytes;
  std::size_t orders = 0;  ///< that were given away
  std::size_t words = 0;   ///< of free rings, too

  [[nodiscard]] std::size_t homes_begin() const {
    return (image.memory_.sizes().homes + image.hardware_count_ + image.queue_count_) *
           sizeof(RingOrder);
  }
  [[nodiscard]] std::size_t queues_begin() const {
    return homes_begin() + lines(image.memory_.sizes().homes * sizeof(FrameRing));
  }
  [[nodiscard]] std::size_t words_begin() const {
    return queues_begin() + lines(image.queue_count_ * sizeof(Queue));
  }
  [[nodiscard]] std::size_t words_bytes() const {
    return sizeof(RingWords) + lines(image.memory_.sizes().frames_per_home * sizeof(std::uint64_t));
  }
  [[nodiscard]] std::size_t size() const {
    return words_begin() + image.queue_count_ * words_bytes();
  }

  template <class T>
  T* here(std::size_t offset) {
    return reinterpret_cast<T*>(bytes.data() + offset);
  }
  template <class T>
  [[nodiscard]] T* there(std::size_t offset) const {
    return reinterpret_cast<T*>(at + offset);
  }

  RingOrder* add_order(std::uint64_t published) {
    const std::size_t offset = orders++ * sizeof(RingOrder);
    *here<RingOrder>(offset) = {published, published, 0, 0};
    return there<RingOrder>(offset);
  }

  template <class Entry>
  Ring<Entry> seen(const Ring<Entry>& ring) const {
    const auto of = [this](auto* address) {
      using Word = std::remove_const_t<std::remove_pointer_t<decltype(address)>>;
      return static_cast<Word*>(seen_at(const_cast<Word*>(address)));
    };
    return {of(ring.entries), of(ring.producer), of(ring.consumer), of(ring.flags), ring.mask};
  }

  /// A ring with all frames of a home, out of which a queue takes frames to send.
  FrameRing add_free_ring(std::uint32_t home) {
    const FrameSizes& sizes = image.memory_.sizes();
    const std::size_t begin = words_begin() + words++ * words_bytes();
    const std::size_t entries = begin + sizeof(RingWords);
    for (std::uint32_t i = 0; i < sizes.frames_per_home; ++i) {
      here<std::uint64_t>(entries)[i] =
          (std::uint64_t{home} * sizes.frames_per_home + i) * sizes.frame_bytes;
    }
    *here<RingWords>(begin) = {sizes.frames_per_home, 0, 0};
    auto* const placed = there<RingWords>(begin);
    return {{there<std::uint64_t>(entries), &placed->producer, &placed->consumer, &placed->flags,
             sizes.frames_per_home - 1},
            add_order(sizes.frames_per_home)};
  }

  void add_port(const Port& port, std::size_t& next, const kernels::packets::Frames& frames) {
    const auto queues = port.queues();
    for (const Port::HardwareQueue& hardware : port.hardware_queues()) {
      const Socket& first = queues[hardware.first].socket;
      here<FrameRing>(homes_begin())[hardware.home] = {
          seen(first.fill()), add_order(image.memory_.sizes().frames_per_home)};
      const FrameRing completions = {seen(first.completions()), add_order(0)};
      const std::size_t count = queues.size() / port.hardware_queues().size();
      for (const Port::PortQueue& queue : queues.subspan(hardware.first, count)) {
        const FrameRing free_ring = add_free_ring(queue.home);
        here<FrameRing>(homes_begin())[queue.home] = free_ring;
        here<Queue>(queues_begin())[next++] = {seen(queue.socket.receive()),
                                               seen(queue.socket.send()),
                                               add_order(0),
                                               free_ring,
                                               completions,
                                               frames};
      }
    }
  }
};

Image::Image(const FrameMemory& memory, std::span<const Port* const> ports)
    : memory_(memory), ports_(ports.begin(), ports.end()) {
  for (const Port* const port : ports_) {
    queue_count_ += port->queues().size();
    hardware_count_ += port->hardware_queues().size();
  }
  if (queue_count_ + hardware_count_ != memory.sizes().homes) {
    throw core::Error(core::ErrorCode::invalid_value, "an image needs all ports of its frames");
  }
  bytes_ = Writer{*this, nullptr, {}, {}}.size();
}

std::vector<std::byte> Image::made_for(std::byte* at, const SeenAt& seen_at) const {
  Writer writer{*this, at, seen_at, std::vector<std::byte>(bytes_)};
  const FrameSizes& sizes = memory_.sizes();
  const kernels::packets::Frames frames{static_cast<std::uint8_t*>(seen_at(memory_.bytes().data())),
                                        writer.there<const FrameRing>(writer.homes_begin()),
                                        sizes.frame_bytes, sizes.frames_per_home, sizes.homes};
  std::size_t next = 0;
  for (const Port* const port : ports_) writer.add_port(*port, next, frames);
  return std::move(writer.bytes);
}

Queue* Image::queues(std::byte* at) const noexcept {
  const SeenAt nowhere;
  return reinterpret_cast<Queue*>(at + Writer{*this, nullptr, nowhere, {}}.queues_begin());
}

std::vector<std::span<std::byte>> pages_of(const FrameMemory& memory,
                                           std::span<const Port* const> ports) {
  std::vector<std::span<std::byte>> pages = {memory.bytes()};
  for (const Port* const port : ports) {
    for (const Port::PortQueue& queue : port->queues()) {
      const auto of_socket = queue.socket.mappings();
      pages.insert(pages.end(), of_socket.begin(), of_socket.end());
    }
  }
  return pages;
}

HostImage::HostImage(const FrameMemory& memory, std::span<const Port* const> ports) {
  const Image image(memory, ports);
  lines_.resize(lines(image.bytes()) / sizeof(Line));
  auto* const at = reinterpret_cast<std::byte*>(lines_.data());
  const auto made = image.made_for(at, [](void* address) { return address; });
  std::memcpy(at, made.data(), made.size());
  queues_ = {image.queues(at), image.queue_count()};
}

}  // namespace offload::packets
