#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comch/transport/data_connection.hpp"
#include "comch/transport/rdma/adapter.hpp"
#include "rdma/completion_queue.hpp"
#include "rdma/pairing.hpp"
#include "rdma/queue_pair.hpp"

namespace offload::comch {

/// A queue pair with what it stands on. Move-only.
struct RdmaQueue {
  std::shared_ptr<Adapter> adapter;
  rdma::CompletionChannel events;
  rdma::CompletionQueue completions;
  rdma::QueuePair pair;
};

/// A reliably connected (RC) queue pair for a channel's messages. Its ends exchange their
/// descriptors over the control channel: it listens on no port.
class RdmaDataEndpoint final : public DataEndpoint {
 public:
  /// `path`: that of the control channel. `depth`: the channel's. Throws Error.
  RdmaDataEndpoint(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                   std::uint32_t depth);

  /// For the peer's connect().
  [[nodiscard]] std::vector<std::byte> descriptor() const;
  /// `peer`: its descriptor(). Throws Error: bad_message for what is none, and what the device
  /// says.
  void connect(std::span<const std::byte> peer);

  [[nodiscard]] std::unique_ptr<DataConnection> start(progress::Engine& engine,
                                                      const kernels::ChannelView& channel,
                                                      DataHandler& handler,
                                                      std::uint32_t initial_credits) override;

 private:
  RdmaQueue queue_;
  rdma::Pairing pairing_;
};

}  // namespace offload::comch
