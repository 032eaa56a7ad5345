#pragma once

#include <cstdint>
#include <optional>

#include "rdma/connection/connection_descriptor.hpp"
#include "rdma/verbs/device_context.hpp"
#include "rdma/verbs/gid.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace offload::rdma {

/// How packets get to a peer, and how long they are tried.
struct PathOptions {
  std::uint8_t port = 1;
  GidRule gid;
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  SendOptions sending;  ///< its first_packet and reads_out are chosen by the pairing
  std::uint8_t receiver_not_ready_timer = Peer{}.receiver_not_ready_timer;
};

/// One end's part in making a connection of two queue pairs, RC or UC, by descriptors. One thread.
class Pairing {
 public:
  /// Throws Error: not_connected if the port is not active, not_found if it has no such GID.
  Pairing(const DeviceContext& device, const PathOptions& options);

  /// What the peer needs to connect to `queue`, which is one of the device's, in INIT.
  [[nodiscard]] ConnectionDescriptor describe(const QueuePair& queue) const;
  /// INIT → RTS. `first_packet`: this end's, if the peer was told of another than describe() says.
  /// Throws Error: invalid_value for a peer of another transport or link layer; what the device
  /// says.
  void connect(QueuePair& queue, const ConnectionDescriptor& peer,
               std::optional<std::uint32_t> first_packet = std::nullopt);
  /// Reads and atomics that may be under way once it is connected.
  [[nodiscard]] std::uint8_t reads_out() const noexcept { return reads_out_; }

 private:
  PathOptions options_;
  Limits limits_;
  Port port_;
  Gid gid_;
  std::uint32_t first_packet_;
  std::uint8_t reads_out_ = 0;
};

}  // namespace offload::rdma
