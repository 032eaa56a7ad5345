#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <map>

#include "gpu/memory.hpp"

namespace offload::gpu {

/// Pages with registers of network cards that the GPU writes to, each registered once, as several
/// queues may have theirs in one. One thread; outlives the queues.
class RegisterPages {
 public:
  /// Returns the GPU's address of a register. Throws Error (driver) if it has none.
  void* seen_at(void* address) {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t offset = number % page_bytes_;
    auto* const page = static_cast<std::byte*>(address) - offset;
    auto found = pages_.find(page);
    if (found == pages_.end()) {
      found = pages_.emplace(page, HostRegistration::of_registers(page, page_bytes_)).first;
    }
    return static_cast<std::byte*>(found->second.device_address()) + offset;
  }

 private:
  std::uintptr_t page_bytes_ = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::map<std::byte*, HostRegistration> pages_;
};

}  // namespace offload::gpu
