#include "doca/rdma/kernel_path.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::doca {
namespace {

using core::Error;
using core::ErrorCode;

/// Requests of a ring, and completions, in one turn.
constexpr std::size_t kCompletionsAtOnce = 64;
/// In a wr_id: it is a receive. Otherwise the index of the connection is there.
constexpr std::uint64_t kReceive = std::uint64_t{1} << 63;

std::byte* at(void* base, std::size_t offset) noexcept {
  return static_cast<std::byte*>(base) + offset;
}

std::size_t requests_offset() noexcept {
  return sizeof(offload_gpu_comch_words);
}
std::size_t events_offset(std::uint32_t entries) noexcept {
  return requests_offset() + std::size_t{entries} * sizeof(offload_gpu_rdma_request);
}

/// The memory of the process that a request names. Throws Error.
std::optional<MemoryUse> local_of(const offload_gpu_rdma_request& request, bool is_written) {
  if (request.length == 0 || request.is_inline != 0) return std::nullopt;
  auto use = MemoryUse::find(request.local_mkey, request.local, request.length);
  if (!use || (is_written && !use->is_writable())) {
    throw Error(ErrorCode::invalid_value, "a kernel named memory that its mmap does not have");
  }
  return use;
}

/// The peer's memory that a write names. Throws Error.
std::optional<MemoryUse> remote_of(const offload_gpu_rdma_request& request) {
  if (request.kind != OFFLOAD_GPU_RDMA_WRITE) return std::nullopt;
  if (request.length == 0 && request.remote_mkey == 0) return std::nullopt;
  auto use = MemoryUse::find_remote(request.remote_mkey, request.remote, request.length);
  if (!use || !memory::includes(use->access(), memory::Access::remote_write)) {
    throw Error(ErrorCode::invalid_value, "a kernel named memory that its peer does not grant");
  }
  return use;
}

/// Writes a copy of `value` to memory of the GPU. Throws Error.
template <class T>
void write_to(doca_gpu& gpu, void* to, const T* values, std::size_t count) {
  const doca_gpu::Piece staging = gpu.allocate(count * sizeof(T), alignof(T), true);
  std::memcpy(staging.cpu, values, count * sizeof(T));
  gpu.copy_in(to, staging.cpu, count * sizeof(T));
  gpu.sync();
}

}  // namespace

KernelRing::KernelRing(doca_gpu& gpu, std::uint32_t entries, bool has_events)
    : mask_(entries - 1), has_events_(has_events) {
  constexpr std::size_t kAlignment = 128;
  const std::size_t events = has_events ? entries * sizeof(offload_gpu_rdma_event) : 0;
  piece_ = gpu.allocate(events_offset(entries) + events, kAlignment, true);
}

offload_gpu_rdma_queue KernelRing::seen() const noexcept {
  offload_gpu_rdma_queue queue{};
  queue.words = reinterpret_cast<offload_gpu_comch_words*>(piece_.gpu);
  queue.requests = reinterpret_cast<offload_gpu_rdma_request*>(at(piece_.gpu, requests_offset()));
  queue.events =
      reinterpret_cast<offload_gpu_rdma_event*>(at(piece_.gpu, events_offset(mask_ + 1)));
  queue.mask = mask_;
  return queue;
}

std::optional<offload_gpu_rdma_request> KernelRing::next_request() {
  if (has_failed()) return std::nullopt;
  const auto* const words = static_cast<const offload_gpu_comch_words*>(piece_.cpu);
  // Acquire: pairs with the kernel's release, so that the entries are read after it.
  const auto end = static_cast<std::uint32_t>(offload_gpu_comch_load(&words->requests));
  if (end == read_) return std::nullopt;
  if (end - ended_ > mask_ + 1 || end - read_ > mask_ + 1) {
    throw Error(ErrorCode::invalid_value, "a kernel claims " + std::to_string(end - read_) +
                                              " requests in a ring of " +
                                              std::to_string(mask_ + 1));
  }
  offload_gpu_rdma_request request;
  std::memcpy(&request, at(piece_.cpu, requests_offset()) + (read_++ & mask_) * sizeof request,
              sizeof request);
  return request;
}

void KernelRing::keep(std::optional<MemoryUse> local, std::optional<MemoryUse> remote) {
  kept_.push_back({std::move(local), std::move(remote)});
}

void KernelRing::end_oldest(const offload_gpu_rdma_event& event) noexcept {
  if (kept_.empty()) return;  // of a queue pair that was detached
  kept_.pop_front();
  if (has_events_) {
    std::memcpy(at(piece_.cpu, events_offset(mask_ + 1)) + (ended_ & mask_) * sizeof event, &event,
                sizeof event);
  }
  ++ended_;
}

void KernelRing::fail(doca_error_t error) noexcept {
  if (has_failed()) return;
  state_ = static_cast<std::uint32_t>(error);
  publish();
}

void KernelRing::publish() noexcept {
  auto* const words = static_cast<offload_gpu_comch_words*>(piece_.cpu);
  // Release: pairs with the kernel's acquire.
  offload_gpu_comch_store(&words->events, (std::uint64_t{state_} << 32) | ended_);
}

RdmaKernelPath::RdmaKernelPath(doca_gpu& gpu, RdmaDevice& device, const Sizes& sizes)
    : gpu_(gpu),
      device_(device),
      mover_(gpu.mover()),
      completions_(device.device, engine_,
                   sizes.connections * sizes.sends + std::bit_ceil(sizes.receives)),
      receives_(device.domain, std::bit_ceil(sizes.receives)),
      received_(gpu, std::bit_ceil(sizes.receives), true) {
  std::vector<offload_gpu_rdma_queue> queues;
  for (std::uint32_t i = 0; i < sizes.connections; ++i) {
    slots_.push_back(Slot{KernelRing(gpu, std::bit_floor(sizes.sends), false)});
    queues.push_back(slots_.back().ring.seen());
  }
  connections_ = gpu.allocate(queues.size() * sizeof queues[0], alignof(std::max_align_t), false);
  write_to(gpu, connections_.gpu, queues.data(), queues.size());
  doca_gpu_dev_rdma made{};
  made.receives.queue = received_.seen();
  made.connections = static_cast<offload_gpu_rdma_queue*>(connections_.gpu);
  made.count = queues.size();
  handle_ = gpu.allocate(sizeof made, alignof(std::max_align_t), false);
  write_to(gpu, handle_.gpu, &made, 1);
  mover_.add(*this);
}

void RdmaKernelPath::attach(const rdma::QueuePair& pair) noexcept {
  const std::lock_guard lock(mutex_);
  const auto free =
      std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.was_used; });
  if (free == slots_.end()) return;  // each index is used once
  free->pair = &pair;
  free->number = pair.qp_num();
  free->was_used = true;
}

void RdmaKernelPath::detach(const rdma::QueuePair& pair) noexcept {
  const std::lock_guard lock(mutex_);
  for (Slot& slot : slots_) {
    if (slot.pair != &pair) continue;
    slot.pair = nullptr;
    slot.ring.fail(DOCA_ERROR_BAD_STATE);
  }
}

void RdmaKernelPath::end() noexcept {
  if (std::exchange(has_ended_, true)) return;
  mover_.remove(*this);
  for (Slot& slot : slots_) {
    slot.pair = nullptr;
    slot.ring.fail(DOCA_ERROR_BAD_STATE);
  }
  received_.fail(DOCA_ERROR_BAD_STATE);
}

bool RdmaKernelPath::gather(GpuStaging&) noexcept {
  const std::lock_guard lock(mutex_);
  bool worked = false;
  try {
    worked = post_receives();
  } catch (const std::exception& error) {  // also that there is no memory
    core::log_error("rdma of a kernel: {}", error.what());
    received_.fail(DOCA_ERROR_IO_FAILED);
  }
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    try {
      worked = post_sends(i) || worked;
    } catch (const std::exception& error) {
      core::log_error("rdma of a kernel: connection {}: {}", i, error.what());
      slots_[i].ring.fail(DOCA_ERROR_IO_FAILED);
    }
  }
  return take_completions() || worked;
}

void RdmaKernelPath::fail(const char* why) noexcept {
  core::log_error("rdma of a kernel: {}", why);
}

bool RdmaKernelPath::post_receives() {
  bool worked = false;
  for (std::size_t i = 0; i < kCompletionsAtOnce; ++i) {
    const auto request = received_.next_request();
    if (!request) break;
    auto local = local_of(*request, true);
    ibv_sge piece{};
    ibv_recv_wr post{};
    post.wr_id = kReceive;
    if (local) {
      piece = {request->local, request->length, local->key(device_.registrar).local};
      post.sg_list = &piece;
      post.num_sge = 1;
    }
    received_.keep(std::move(local), std::nullopt);
    ibv_recv_wr* bad = nullptr;
    const core::Status status = receives_.post(post, bad);
    if (!status.ok()) throw Error(status.error(), "the device takes no receive");
    worked = true;
  }
  return worked;
}

bool RdmaKernelPath::post_sends(std::uint32_t index) {
  Slot& slot = slots_[index];
  if (slot.pair == nullptr) return false;
  bool worked = false;
  for (std::size_t i = 0; i < kCompletionsAtOnce; ++i) {
    auto request = slot.ring.next_request();
    if (!request) break;
    const bool writes = request->kind == OFFLOAD_GPU_RDMA_WRITE;
    if ((!writes && request->kind != OFFLOAD_GPU_RDMA_SEND) ||
        (request->is_inline != 0 && request->length > OFFLOAD_GPU_RDMA_INLINE)) {
      throw Error(ErrorCode::invalid_value, "a kernel wrote an invalid request");
    }
    auto local = local_of(*request, false);
    auto remote = remote_of(*request);
    ibv_sge piece{};
    ibv_send_wr post{};
    post.wr_id = index;
    const bool tells = request->has_immediate != 0;
    post.opcode = writes ? (tells ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE)
                         : (tells ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND);
    post.imm_data = request->immediate;
    post.send_flags = IBV_SEND_SIGNALED;
    if (remote) post.wr.rdma = {request->remote, remote->key_of_peer()};
    if (request->length != 0) {
      post.sg_list = &piece;
      post.num_sge = 1;
      if (local) {
        piece = {request->local, request->length, local->key(device_.registrar).local};
      } else {
        post.send_flags |= IBV_SEND_INLINE;
        piece = {reinterpret_cast<std::uint64_t>(request->bytes), request->length, 0};
      }
    }
    slot.ring.keep(std::move(local), std::move(remote));
    ibv_send_wr* bad = nullptr;
    const int errnum = ibv_post_send(slot.pair->get(), &post, &bad);
    if (errnum != 0) throw Error(ErrorCode::driver, "the device takes no operation");
    worked = true;
  }
  return worked;
}

bool RdmaKernelPath::take_completions() {
  std::array<ibv_wc, kCompletionsAtOnce> told{};
  const auto taken = completions_.queue().poll(told);
  for (const ibv_wc& each : taken) {
    const bool is_receive = (each.wr_id & kReceive) != 0;
    const auto of = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
      return slot.was_used && slot.number == each.qp_num;
    });
    const auto index = static_cast<std::uint32_t>(of - slots_.begin());
    if (of == slots_.end()) continue;
    KernelRing& ring = is_receive ? received_ : of->ring;
    if (each.status != IBV_WC_SUCCESS) {
      const bool is_flushed = each.status == IBV_WC_WR_FLUSH_ERR;
      if (!is_flushed) {
        core::log_error("rdma of a kernel: connection {}: {}", index,
                        rdma::explain(each.status, each.vendor_err));
      }
      // A flushed receive belongs to a connection that ends; the others still use the queue.
      if (!is_receive || !is_flushed) ring.fail(DOCA_ERROR_IO_FAILED);
      continue;
    }
    const bool tells = (each.wc_flags & IBV_WC_WITH_IMM) != 0;
    ring.end_oldest({tells ? each.imm_data : 0, index});
  }
  if (taken.empty()) return false;
  received_.publish();
  for (Slot& slot : slots_) slot.ring.publish();
  return true;
}

}  // namespace offload::doca
