#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/log.hpp"
#include "memory/range.hpp"
#include "rdma/path/pairing.hpp"
#include "rdma/verbs/device_context.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::comch {

/// An open RDMA device for data connections to peers, through any of its ports and addresses.
struct Adapter {
  /// Throws Error.
  explicit Adapter(std::string_view name) : device(name), domain(device), registrar(domain) {}

  /// Logs what holds for all queues of the device, once. Only the thread that makes the queues.
  void log_once(core::LogLevel level, const std::string& line) {
    if (logged.insert(line).second) core::log(level, "{}", line);
  }

  rdma::DeviceContext device;
  rdma::ProtectionDomain domain;
  rdma::RdmaRegistrar registrar;
  std::set<std::string> logged{};
  /// The device was removed or reset: it completes nothing that is posted. Relaxed; any thread.
  std::atomic<bool> has_failed{false};
};

/// Memory that is registered as long as this lives.
struct Registered {
  /// `by_peer`: what the peer may do there. Throws Error.
  Registered(rdma::RdmaRegistrar& by, memory::Range of,
             memory::Access by_peer = memory::Access::none)
      : registrar(&by),
        range(std::move(of)),
        key(by.register_range(range, memory::kLocalAccess | by_peer)) {}
  Registered& operator=(Registered&&) = delete;
  ~Registered() { registrar->deregister(range, key); }

  [[nodiscard]] std::uint64_t address() const noexcept {
    return reinterpret_cast<std::uint64_t>(range.address);
  }
  /// For a work request.
  [[nodiscard]] ibv_sge piece(const void* at, std::uint32_t length) const noexcept {
    return {reinterpret_cast<std::uintptr_t>(at), length, key.local};
  }
  [[nodiscard]] bool contains(const void* at) const noexcept {
    return at >= range.address && at < range.address + range.length;
  }

  rdma::RdmaRegistrar* registrar;
  memory::Range range;
  memory::MemoryKey key;
};

}  // namespace offload::comch
