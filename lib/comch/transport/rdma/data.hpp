#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comch/transport/data_connection.hpp"
#include "comch/transport/rdma/adapter.hpp"
#include "rdma/path/pairing.hpp"
#include "rdma/verbs/completion_queue.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace offload::comch {

/// A queue pair with the objects that it needs. Move-only.
struct RdmaQueue {
  std::shared_ptr<Adapter> adapter;
  rdma::CompletionChannel events;
  rdma::CompletionQueue completions;
  rdma::QueuePair pair;
};

/// A reliably connected (RC) queue pair for a channel's messages. Its ends exchange their
/// descriptors over the connection that attaches the channel: it listens on no port.
class RdmaDataEndpoint final : public DataEndpoint {
 public:
  /// `path`: that of this connection. `depth`: the channel's. Throws Error.
  RdmaDataEndpoint(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                   std::uint32_t depth);

  /// Returns the descriptor for the peer's connect().
  [[nodiscard]] std::vector<std::byte> descriptor() const {
    return pairing_.describe(queue_.pair).encode();
  }
  /// Connects to `peer`, its descriptor(). Throws Error: bad_message for an invalid descriptor, and
  /// errors of the device.
  void connect(std::span<const std::byte> peer) {
    pairing_.connect(queue_.pair, rdma::ConnectionDescriptor::decode(peer));
  }

  [[nodiscard]] std::unique_ptr<DataConnection> start(progress::Engine& engine,
                                                      const kernels::ChannelView& channel,
                                                      DataHandler& handler,
                                                      std::uint32_t initial_credits) override;

 private:
  RdmaQueue queue_;
  rdma::Pairing pairing_;
};

}  // namespace offload::comch
