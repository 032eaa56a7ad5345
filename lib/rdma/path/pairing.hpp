#pragma once

#include <cstdint>
#include <optional>

#include "rdma/path/connection_descriptor.hpp"
#include "rdma/verbs/device_context.hpp"
#include "rdma/verbs/gid.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace offload::rdma {

/// The path to a peer and its retries. Pairing fills in what the peer's descriptor decides.
struct PathOptions {
  std::uint8_t port_num = 1;
  std::uint16_t pkey_index = 0;  ///< of the port's table of partitions; 0: the default one
  GidRule gid;                   ///< which entry of the port's table is sgid_index
  /// The connection takes the smallest of the two ends' and of their ports' active MTUs.
  ibv_mtu most_mtu = IBV_MTU_4096;
  RtrAttributes rtr;
  RtsAttributes rts;
};

/// One end of the connecting of two RC or UC queue pairs by descriptors. One thread.
class Pairing {
 public:
  /// Throws Error: not_connected if the port is not active, not_found if it has no such GID.
  Pairing(const DeviceContext& device, const PathOptions& options);

  /// The descriptor of `queue`, a queue pair of the device in INIT, for the peer.
  [[nodiscard]] ConnectionDescriptor describe(const QueuePair& queue) const;
  /// INIT → RTS. `sq_psn`: this end's, if the peer knows another than describe() has. Throws Error:
  /// invalid_value for a peer of another queue pair type or link layer; the device's errors.
  void connect(QueuePair& queue, const ConnectionDescriptor& peer,
               std::optional<std::uint32_t> sq_psn = std::nullopt);
  /// Reads and atomics that may be outstanding; 0 before connect().
  [[nodiscard]] std::uint8_t max_rd_atomic() const noexcept { return max_rd_atomic_; }

 private:
  /// RoCE, else InfiniBand.
  [[nodiscard]] bool ethernet() const noexcept {
    return port_.link_layer == IBV_LINK_LAYER_ETHERNET;
  }

  PathOptions options_;
  std::uint8_t max_qp_rd_atom_;       ///< as in ibv_device_attr
  std::uint8_t max_qp_init_rd_atom_;  ///< as in ibv_device_attr
  ibv_port_attr port_;
  ibv_gid_entry gid_;
  std::uint32_t psn_;
  std::uint8_t max_rd_atomic_ = 0;
};

}  // namespace offload::rdma
