#include "doca/gpu/ring.hpp"

#include <bit>
#include <cstring>
#include <string>

#include "core/error.hpp"

namespace offload::doca {

GpuRing::GpuRing(doca_gpu& gpu, std::uint32_t count) : mask_(std::bit_ceil(count) - 1) {
  const std::size_t entries = std::size_t{mask_} + 1;
  constexpr std::size_t kAlignment = 128;
  shared_ = gpu.allocate(sizeof *words_ + entries * (sizeof *requests_ + sizeof *events_),
                         kAlignment, true);
  queue_ = gpu.allocate(sizeof(offload_gpu_comch_queue), kAlignment, false);
  // The same offsets in the addresses of both.
  const auto at = [](void* base, std::size_t offset) {
    return static_cast<void*>(static_cast<std::byte*>(base) + offset);
  };
  const std::size_t events = sizeof *words_ + entries * sizeof *requests_;
  words_ = static_cast<offload_gpu_comch_words*>(shared_.cpu);
  requests_ = static_cast<offload_gpu_comch_request*>(at(shared_.cpu, sizeof *words_));
  events_ = static_cast<offload_gpu_comch_event*>(at(shared_.cpu, events));

  const doca_gpu::Piece staging = gpu.allocate(sizeof(offload_gpu_comch_queue), kAlignment, true);
  offload_gpu_comch_queue queue{};
  queue.words = static_cast<offload_gpu_comch_words*>(shared_.gpu);
  queue.requests = static_cast<offload_gpu_comch_request*>(at(shared_.gpu, sizeof *words_));
  queue.events = static_cast<offload_gpu_comch_event*>(at(shared_.gpu, events));
  queue.mask = mask_;
  std::memcpy(staging.cpu, &queue, sizeof queue);
  gpu.copy_in(queue_.gpu, staging.cpu, sizeof queue);
  gpu.sync();
}

void GpuRing::set_state(doca_error_t error) noexcept {
  state_ = static_cast<std::uint32_t>(error);
  publish();
}

std::optional<offload_gpu_comch_request> GpuRing::next_request() {
  // Acquire: pairs with the kernel's release, so that the entries are read after it.
  const auto end = static_cast<std::uint32_t>(offload_gpu_comch_load(&words_->requests));
  if (end == read_) return std::nullopt;
  if (end - written_ > mask_ + 1 || end - read_ > mask_ + 1) {
    throw core::Error(core::ErrorCode::invalid_value,
                      "a kernel claims " + std::to_string(end - read_) + " requests in a ring of " +
                          std::to_string(mask_ + 1));
  }
  offload_gpu_comch_request request;
  std::memcpy(&request, &requests_[read_++ & mask_], sizeof request);
  return request;
}

void GpuRing::write(const offload_gpu_comch_event& event) noexcept {
  events_[written_++ & mask_] = event;
}

void GpuRing::publish() noexcept {
  // Release: pairs with the kernel's acquire.
  offload_gpu_comch_store(&words_->events, (std::uint64_t{state_} << 32) | written_);
}

}  // namespace offload::doca
