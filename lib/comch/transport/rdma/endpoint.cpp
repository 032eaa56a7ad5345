#include "comch/transport/rdma/endpoint.hpp"

#include <utility>

#include "comch/transport/rdma/data.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::comch {
namespace {

using rdma::QueuePair;
using rdma::QueuePairOptions;

/// With room for a short message in the request itself, which spares the card a read, if the device
/// has that.
QueuePair make_pair(const Adapter& adapter, const rdma::CompletionQueue& completions,
                    std::uint32_t depth) {
  QueuePairOptions options;
  options.max_send_wr = options.max_recv_wr = depth;
  options.max_sge = 2;  // a header, and a payload where it lies
  options.max_inline_data = protocol::kDataHeaderSize + kernels::kMaxPacketPayload;
  try {
    return {adapter.domain, completions, completions, options};
  } catch (const core::Error& error) {
    core::log_debug("no inline messages: {}", error.what());
    options.max_inline_data = 0;
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

Adapter::Adapter(std::string_view name) : device(name), domain(device), registrar(domain) {}

RdmaDataEndpoint::RdmaDataEndpoint(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                                   std::uint32_t depth)
    : queue_(make_queue(std::move(adapter), path.port_num, depth)),
      pairing_(queue_.adapter->device, path) {}

std::vector<std::byte> RdmaDataEndpoint::endpoint() const {
  return pairing_.describe(queue_.pair).encode();
}

void RdmaDataEndpoint::connect(std::span<const std::byte> endpoint) {
  pairing_.connect(queue_.pair, rdma::ConnectionDescriptor::decode(endpoint));
}

std::unique_ptr<DataConnection> RdmaDataEndpoint::carry(progress::Engine& engine,
                                                        const kernels::ChannelView& channel,
                                                        DataHandler& end, std::uint32_t unasked) {
  return std::make_unique<RdmaDataConnection>(engine, std::move(queue_), channel, end, unasked);
}

}  // namespace offload::comch
