#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "comch/transport/data_connection.hpp"
#include "rdma/connection/pairing.hpp"
#include "rdma/verbs/completion_queue.hpp"
#include "rdma/verbs/protection_domain.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace offload::comch {

/// An RDMA device, open for control and for the channels of its peers, by whichever of its ports
/// and addresses each of them comes.
struct Adapter {
  /// Throws Error.
  explicit Adapter(std::string_view name);

  rdma::DeviceContext device;
  rdma::ProtectionDomain domain;
  rdma::Registrar registrar;
};

/// A queue pair with what it stands on. Move-only.
struct RdmaQueue {
  std::shared_ptr<Adapter> adapter;
  rdma::CompletionChannel events;
  rdma::CompletionQueue completions;
  rdma::QueuePair pair;
};

/// A reliable connection for a channel's messages. The control channel brings its ends together, so
/// no port has to be found for it; nobody can connect to it unasked.
class RdmaDataEndpoint final : public DataEndpoint {
 public:
  /// `path`: that of the control channel. `depth`: the channel's. Throws Error.
  RdmaDataEndpoint(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                   std::uint32_t depth);

  /// For the peer's connect().
  [[nodiscard]] std::vector<std::byte> endpoint() const;
  /// Throws Error: bad_message for what no endpoint is, and what the device says.
  void connect(std::span<const std::byte> endpoint);

  [[nodiscard]] std::unique_ptr<DataConnection> carry(progress::Engine& engine,
                                                      const kernels::ChannelView& channel,
                                                      DataHandler& end,
                                                      std::uint32_t unasked) override;

 private:
  RdmaQueue queue_;
  rdma::Pairing pairing_;
};

}  // namespace offload::comch
