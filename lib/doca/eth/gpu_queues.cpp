#include "doca/eth/gpu_queues.hpp"

#include <endian.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "kernels/packets/headers.hpp"

namespace offload::doca {
namespace {

using core::Error;
using core::ErrorCode;

/// Frames of a queue in one turn of the mover.
constexpr std::size_t kFramesInATurn = 256;
constexpr std::size_t kQueueAlignment = 128;

std::uint64_t real_time() noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// Keys of entries are in network order; those of arrays of buffers are not.
std::optional<MemoryUse> memory_of(const doca_gpu_dev_eth_txq_wqe& entry) noexcept {
  auto found = MemoryUse::find(be32toh(entry.mkey), entry.address, entry.bytes);
  return found ? std::move(found) : MemoryUse::find(entry.mkey, entry.address, entry.bytes);
}

}  // namespace

GpuEthPath::GpuEthPath(doca_gpu& gpu, std::size_t bytes)
    : gpu_(gpu),
      mover_(gpu.mover()),
      shared_(gpu.allocate(sizeof(offload_gpu_eth_words) + bytes, kQueueAlignment, true)) {}

void GpuEthPath::set_queue(const void* queue, std::size_t bytes) {
  queue_ = gpu_->allocate(bytes, kQueueAlignment, false);
  const doca_gpu::Piece staging = gpu_->allocate(bytes, kQueueAlignment, true);
  std::memcpy(staging.cpu, queue, bytes);
  gpu_->copy_in(queue_.gpu, staging.cpu, bytes);
  gpu_->sync();
}

void GpuEthPath::begin_path(std::shared_ptr<EthPort> port, std::uint32_t queue) {
  port_ = std::move(port);
  port_queue_ = queue;
  try {
    mover_.add(*this);
  } catch (...) {
    port_.reset();
    throw;
  }
}

void GpuEthPath::end_path() noexcept {
  if (port_) mover_.remove(*this);
  port_.reset();
  if (state_ != 0) return;
  state_ = DOCA_ERROR_BAD_STATE;
  publish(published_);
}

void GpuEthPath::fail(const char* why) noexcept {
  if (has_failed()) return;
  core::log_error("an Ethernet queue of a kernel cannot go on: {}", why);
  state_ = DOCA_ERROR_IO_FAILED;
  publish(published_);
}

void GpuEthPath::publish(std::uint32_t count) noexcept {
  published_ = count;
  // Release: pairs with the kernel's acquire.
  offload_gpu_comch_store(&words()->library, (std::uint64_t{state_} << 32) | count);
}

GpuEthReceiver::GpuEthReceiver(doca_gpu& gpu, MemoryUse buffer, std::uint32_t place_bytes,
                               std::uint32_t key)
    : GpuEthPath(gpu, buffer.bytes().size() / place_bytes * sizeof(doca_gpu_dev_eth_rxq_attr)),
      buffer_(std::move(buffer)),
      place_bytes_(place_bytes),
      mask_(static_cast<std::uint32_t>(buffer_->bytes().size() / place_bytes) - 1) {
  arrived_.reserve(kFramesInATurn);
  doca_gpu_eth_rxq queue{};
  queue.words = words_of_kernel();
  queue.frames = reinterpret_cast<const doca_gpu_dev_eth_rxq_attr*>(entries_of_kernel());
  queue.address = reinterpret_cast<std::uintptr_t>(buffer_->bytes().data());
  queue.place_bytes = place_bytes;
  queue.mask = mask_;
  queue.mkey = htobe32(key);
  set_queue(&queue, sizeof queue);
}

bool GpuEthReceiver::gather(GpuStaging& staging) noexcept {
  if (has_failed()) return false;
  // Acquire: pairs with the kernel's release, so that it has read what is overwritten.
  const auto released = static_cast<std::uint32_t>(offload_gpu_comch_load(&words()->kernel));
  if (released - released_ > written_ - released_) {
    fail("a kernel has received frames that have not arrived");
    return true;
  }
  released_ = released;
  const std::uint32_t place = written_ & mask_;
  const std::uint32_t most = std::min({mask_ + 1 - (written_ - released_), mask_ + 1 - place,
                                       static_cast<std::uint32_t>(kFramesInATurn)});
  const std::span<std::byte> room = staging.take(std::size_t{most} * place_bytes_);
  std::size_t used = 0;
  const std::size_t frames = port_->receive(
      port_queue_, room.size() / place_bytes_, [&](std::span<const std::byte> frame) {
        if (frame.size() > place_bytes_) return;
        std::copy(frame.begin(), frame.end(), room.begin() + static_cast<std::ptrdiff_t>(used));
        used += place_bytes_;
        arrived_.push_back({static_cast<std::uint32_t>(frame.size()), real_time()});
      });
  staging.give_back(room.size() - used);
  if (used == 0) return frames != 0;
  std::byte* const to = buffer_->bytes().data() + std::size_t{place} * place_bytes_;
  try {
    gpu_->copy_in(to, room.data(), used);
  } catch (const Error& error) {
    fail(error.what());
  }
  return true;
}

bool GpuEthReceiver::pass_on() noexcept {
  if (has_failed() || arrived_.empty()) return false;
  auto* const frames = reinterpret_cast<doca_gpu_dev_eth_rxq_attr*>(entries());
  for (const doca_gpu_dev_eth_rxq_attr& each : arrived_) frames[written_++ & mask_] = each;
  arrived_.clear();
  publish(written_);
  return true;
}

GpuEthSender::GpuEthSender(doca_gpu& gpu, const Options& options)
    : GpuEthPath(gpu, options.entries * sizeof(doca_gpu_dev_eth_txq_wqe)), options_(options) {
  outgoing_.reserve(kFramesInATurn);
  doca_gpu_eth_txq queue{};
  queue.words = words_of_kernel();
  queue.entries = reinterpret_cast<doca_gpu_dev_eth_txq_wqe*>(entries_of_kernel());
  queue.mask = options.entries - 1;
  queue.may_wait = options.may_wait ? 1 : 0;
  set_queue(&queue, sizeof queue);
}

void GpuEthSender::end() noexcept {
  const std::shared_ptr<EthPort> port = port_;
  end_path();
  if (port) drop(*port);
}

void GpuEthSender::drop(EthPort& port) noexcept {
  for (const Outgoing& each : outgoing_) port.return_room(port_queue_, each.room);
  outgoing_.clear();
}

bool GpuEthSender::gather(GpuStaging& staging) noexcept {
  if (has_failed()) return false;
  try {
    take_entries(staging);
  } catch (const Error& error) {
    fail(error.what());
    return true;
  }
  return !outgoing_.empty();
}

void GpuEthSender::take_entries(GpuStaging& staging) {
  // Acquire: pairs with the kernel's release, so that the entries are read after it.
  const auto end = static_cast<std::uint32_t>(offload_gpu_comch_load(&words()->kernel));
  if (end - ended_ > options_.entries || end - read_ > options_.entries) {
    throw Error(ErrorCode::invalid_value, "a kernel claims more entries than the queue has");
  }
  const std::uint64_t now = options_.may_wait ? real_time() : 0;
  const auto* const ring = reinterpret_cast<const doca_gpu_dev_eth_txq_wqe*>(entries());
  while (read_ != end && outgoing_.size() < kFramesInATurn) {
    doca_gpu_dev_eth_txq_wqe entry;
    std::memcpy(&entry, &ring[read_ & (options_.entries - 1)], sizeof entry);
    if (options_.may_wait && entry.time > now) return;
    if (entry.bytes < kernels::packets::kEthernetBytes || entry.bytes > EthPort::kMostFrame) {
      throw Error(ErrorCode::invalid_value,
                  "a kernel sends a frame of " + std::to_string(entry.bytes) + " bytes");
    }
    auto memory = memory_of(entry);
    if (!memory) throw Error(ErrorCode::invalid_value, "a kernel sends bytes that are in no mmap");
    const std::span<std::byte> bytes = staging.take(entry.bytes);
    const auto room = bytes.size() == entry.bytes ? port_->take_room(port_queue_) : std::nullopt;
    if (!room) {
      staging.give_back(bytes.size());
      return;
    }
    gpu_->copy_out(bytes.data(), memory->bytes().data(), bytes.size());
    outgoing_.push_back({std::move(*memory), *room, bytes,
                         (entry.flags & DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY) != 0});
    ++read_;
  }
}

bool GpuEthSender::pass_on() noexcept {
  if (has_failed()) {
    drop(*port_);
    return false;
  }
  for (const Outgoing& each : outgoing_) {
    std::copy(each.bytes.begin(), each.bytes.end(), each.room.bytes.begin());
    const auto frame = each.room.bytes.first(each.bytes.size());
    write_checksums(frame, options_.writes_ip_checksum, options_.writes_transport_checksum);
    port_->send(port_queue_, each.room, static_cast<std::uint32_t>(frame.size()));
    sent_.at(each.room.number) = each.notifies ? Sent::notifies : Sent::yes;
  }
  outgoing_.clear();
  if (read_ != ended_) port_->wake(port_queue_);
  return take_ends();
}

bool GpuEthSender::take_ends() noexcept {
  std::array<std::uint32_t, kFramesInATurn> numbers{};
  const std::size_t count = port_->take_sent(port_queue_, numbers);
  for (std::size_t i = 0; i < count; ++i) {
    switch (std::exchange(sent_.at(numbers.at(i)), Sent::no)) {
      case Sent::no: break;  // of an earlier sender
      case Sent::notifies: ++notified_; [[fallthrough]];
      case Sent::yes: ++ended_; break;
    }
  }
  if (count == 0) return false;
  offload_gpu_comch_store(&words()->notified, notified_);
  publish(ended_);
  return true;
}

}  // namespace offload::doca
