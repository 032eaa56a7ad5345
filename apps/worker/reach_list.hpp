#pragma once

#include <fmt/core.h>

#include <string>
#include <vector>

#include "backend/gpu_range.hpp"
#include "core/error.hpp"
#include "device/device.hpp"
#include "rdma/verbs/gpu_reach.hpp"

namespace offload::worker {

inline std::string tried(const device::Device& card, const device::Device& gpu) {
  constexpr std::size_t kBytes = 4096;
  try {
    const rdma::DeviceContext context(card.name);
    const rdma::ProtectionDomain domain(context);
    return rdma::reach_of(domain, backend::make_gpu_range(gpu, kBytes)).describe();
  } catch (const core::Error& error) {
    return fmt::format("in an unknown way, because the test failed: {}", error.what());
  }
}

/// A text for people: how each network card reaches the memory of each GPU, which is tried; empty
/// without a card or a GPU.
inline std::string reach_list(const std::vector<device::Device>& devices) {
  std::string text;
  for (const auto& card : devices) {
    if (card.kind != device::Kind::rdma) continue;
    for (const auto& gpu : devices) {
      if (gpu.kind != device::Kind::gpu) continue;
      text += fmt::format("rdma:{} accesses memory of gpu:{} {}\n", card.index, gpu.index,
                          tried(card, gpu));
    }
  }
  return text;
}

}  // namespace offload::worker
