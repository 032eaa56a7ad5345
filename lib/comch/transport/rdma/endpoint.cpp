#include "comch/transport/rdma/endpoint.hpp"

#include <utility>

#include "comch/transport/rdma/data.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::comch {
namespace {

using rdma::QueuePair;
using rdma::QueuePairOptions;

/// With inline sends (IBV_SEND_INLINE) for short messages, which spare the device a read, if it has
/// them.
QueuePair make_pair(const Adapter& adapter, const rdma::CompletionQueue& completions,
                    std::uint32_t depth) {
  QueuePairOptions options;
  options.send_depth = options.receive_depth = depth;
  options.gather = 2;  // a header, and a payload where it lies
  options.inline_size = protocol::kDataHeaderSize + kernels::kMaxPacketPayload;
  try {
    return {adapter.domain, completions, completions, options};
  } catch (const core::Error& error) {
    core::log_debug("no inline messages: {}", error.what());
    options.inline_size = 0;
    return {adapter.domain, completions, completions, options};
  }
}

RdmaQueue make_queue(std::shared_ptr<Adapter> adapter, std::uint8_t port, std::uint32_t depth) {
  rdma::CompletionChannel events(adapter->device);
  rdma::CompletionQueue completions(adapter->device, 2 * depth, &events);
  QueuePair pair = make_pair(*adapter, completions, depth);
  pair.initialize(port, memory::Access{});  // the peer reaches no memory
  return {std::move(adapter), std::move(events), std::move(completions), std::move(pair)};
}

}  // namespace

RdmaDataEndpoint::RdmaDataEndpoint(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                                   std::uint32_t depth)
    : queue_(make_queue(std::move(adapter), path.port, depth)),
      pairing_(queue_.adapter->device, path) {}

std::vector<std::byte> RdmaDataEndpoint::descriptor() const {
  return pairing_.describe(queue_.pair).encode();
}

void RdmaDataEndpoint::connect(std::span<const std::byte> peer) {
  pairing_.connect(queue_.pair, rdma::ConnectionDescriptor::decode(peer));
}

std::unique_ptr<DataConnection> RdmaDataEndpoint::start(progress::Engine& engine,
                                                        const kernels::ChannelView& channel,
                                                        DataHandler& handler,
                                                        std::uint32_t initial_credits) {
  return std::make_unique<RdmaDataConnection>(engine, std::move(queue_), channel, handler,
                                              initial_credits);
}

}  // namespace offload::comch
