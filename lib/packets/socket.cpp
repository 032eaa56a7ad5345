#include "packets/socket.hpp"

#include <fmt/core.h>
#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <thread>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "packets/privileges.hpp"

namespace offload::packets {

/// The kernel releases the queue of a program that has ended from a work queue (struct
/// xsk_buff_pool, xp_release_deferred): the next program may find it busy for a moment.
constexpr core::Duration kQueueReturns = std::chrono::seconds(5);

Socket::Socket(FrameMemory& memory, const SocketPlace& place)
    : fd_(check_port(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0), "socket(AF_XDP)")) {
  // A place for every frame in each ring that all may get to: so none is ever full.
  const std::uint32_t all = std::bit_ceil(memory.frames());
  const std::uint32_t own = memory.sizes().frames_per_home;
  const bool has_frames = place.same_hardware_queue < 0;
  if (memory.socket() < 0) {
    const auto bytes = memory.bytes();
    xdp_umem_reg registration{};
    registration.addr = reinterpret_cast<std::uintptr_t>(bytes.data());
    registration.len = bytes.size();
    registration.chunk_size = memory.sizes().frame_bytes;
    check_port(::setsockopt(fd(), SOL_XDP, XDP_UMEM_REG, &registration, sizeof registration),
               fmt::format("XDP_UMEM_REG of {} bytes", bytes.size()));
  }
  set_ring(XDP_RX_RING, own, "XDP_RX_RING");
  set_ring(XDP_TX_RING, all, "XDP_TX_RING");
  if (has_frames) {
    set_ring(XDP_UMEM_FILL_RING, own, "XDP_UMEM_FILL_RING");
    set_ring(XDP_UMEM_COMPLETION_RING, all, "XDP_UMEM_COMPLETION_RING");
  }
  xdp_mmap_offsets offsets{};
  socklen_t length = sizeof offsets;
  check_port(::getsockopt(fd(), SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length), "XDP_MMAP_OFFSETS");
  map(receive_, XDP_PGOFF_RX_RING, offsets.rx, own);
  map(send_, XDP_PGOFF_TX_RING, offsets.tx, all);
  if (has_frames) {
    map(fill_, XDP_UMEM_PGOFF_FILL_RING, offsets.fr, own);
    map(completions_, XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, all);
  }
  bind(memory, place);
}

Socket::~Socket() {
  for (const auto mapping : mappings_) ::munmap(mapping.data(), mapping.size());
}

void Socket::set_ring(int option, std::uint32_t entries, const char* name) const {
  check_port(::setsockopt(fd(), SOL_XDP, option, &entries, sizeof entries),
             fmt::format("{} of {} entries", name, entries));
}

template <class Ring>
void Socket::map(Ring& ring, std::uint64_t page, const xdp_ring_offset& offsets,
                 std::uint32_t entries) {
  const std::size_t bytes = offsets.desc + std::size_t{entries} * sizeof(*ring.entries);
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd(),
                            static_cast<off_t>(page));
  if (data == MAP_FAILED) core::throw_errno("mmap of a ring of AF_XDP");
  auto* const begin = static_cast<std::byte*>(data);
  mappings_.emplace_back(begin, bytes);
  ring.entries = reinterpret_cast<decltype(ring.entries)>(begin + offsets.desc);
  ring.producer = reinterpret_cast<std::uint32_t*>(begin + offsets.producer);
  ring.consumer = reinterpret_cast<std::uint32_t*>(begin + offsets.consumer);
  ring.flags = reinterpret_cast<const std::uint32_t*>(begin + offsets.flags);
  ring.mask = entries - 1;
}

void Socket::bind(FrameMemory& memory, const SocketPlace& place) const {
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_ifindex = place.interface_index;
  address.sxdp_queue_id = place.hardware_queue;
  const int shares = place.same_hardware_queue >= 0 ? place.same_hardware_queue : memory.socket();
  if (shares >= 0) {
    // That socket then determines how frames move, and the kernel accepts no other flag.
    address.sxdp_flags = XDP_SHARED_UMEM;
    address.sxdp_shared_umem_fd = static_cast<__u32>(shares);
  } else {
    // Neither of XDP_COPY and XDP_ZEROCOPY: the kernel takes the latter if the driver has it.
    address.sxdp_flags = static_cast<__u16>(XDP_USE_NEED_WAKEUP | (place.only_copy ? XDP_COPY : 0));
  }
  const auto deadline = core::Clock::now() + kQueueReturns;
  while (::bind(fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int errnum = errno;
    if (errnum != EBUSY || core::Clock::now() >= deadline) {
      const auto action =
          fmt::format("binding to queue {} of {}", place.hardware_queue, place.interface);
      if (errnum != EINVAL) throw_port_error(action, errnum);
      throw core::Error(core::ErrorCode::invalid_value,
                        fmt::format("{}: {}; ethtool -l {} shows how many queues the interface has",
                                    action, core::describe_errno(errnum), place.interface),
                        {core::Cause::Domain::system, errnum});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (memory.socket() < 0) memory.set_socket(fd());
}

bool Socket::is_zero_copy() const {
  xdp_options options{};
  socklen_t length = sizeof options;
  check_port(::getsockopt(fd(), SOL_XDP, XDP_OPTIONS, &options, &length), "XDP_OPTIONS");
  return (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
}

Socket::Statistics Socket::statistics() const {
  xdp_statistics counted{};
  socklen_t length = sizeof counted;
  check_port(::getsockopt(fd(), SOL_XDP, XDP_STATISTICS, &counted, &length), "XDP_STATISTICS");
  return {counted.rx_dropped, counted.rx_ring_full, counted.rx_fill_ring_empty_descs,
          counted.tx_invalid_descs};
}

}  // namespace offload::packets
