#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "gpu/memory.hpp"
#include "packets/image.hpp"

namespace offload::gpu {

/// The queues of a port as kernels of the current GPU have them: its frames and rings registered,
/// and in memory of the GPU what only that uses.
class PacketImage {
 public:
  /// The port outlives it. Throws Error.
  PacketImage(const packets::FrameMemory& memory, const packets::Port& port)
      : one_(&port), image_(memory, std::span(&one_, 1)), there_(image_.bytes()) {
    for (const auto pages : packets::pages_of(memory, std::span(&one_, 1))) {
      registrations_.push_back({pages, HostRegistration(pages.data(), pages.size())});
    }
    const auto made =
        image_.made_for(there_.get(), [this](void* address) { return seen_at(address); });
    check_cuda(cudaMemcpy(there_.get(), made.data(), made.size(), cudaMemcpyDefault),
               "cudaMemcpy of a port's handles");
  }

  /// Return the handles at the GPU's addresses.
  [[nodiscard]] const kernels::packets::Queue* queues() const noexcept {
    return image_.queues(there_.get());
  }
  [[nodiscard]] std::size_t queue_count() const noexcept { return image_.queue_count(); }

 private:
  struct Registered {
    std::span<std::byte> pages;
    HostRegistration registration;
  };

  void* seen_at(void* address) const {
    auto* const byte = static_cast<std::byte*>(address);
    for (const Registered& each : registrations_) {
      if (byte < each.pages.data() || byte >= each.pages.data() + each.pages.size()) continue;
      return static_cast<std::byte*>(each.registration.device_address()) +
             (byte - each.pages.data());
    }
    throw core::Error(core::ErrorCode::unexpected, "the address is in no ring and no frame");
  }

  const packets::Port* one_;
  packets::Image image_;
  std::vector<Registered> registrations_;
  DeviceArray<std::byte> there_;
};

}  // namespace offload::gpu
