#include "rdma/connection/pairing.hpp"

#include <algorithm>
#include <random>
#include <string>

#include "core/error.hpp"

namespace offload::rdma {
namespace {

using core::Error;
using core::ErrorCode;

}  // namespace

Pairing::Pairing(const DeviceContext& device, const PathOptions& options)
    : options_(options),
      limits_(device.limits()),
      port_(device.port(options.port)),
      first_packet_(std::random_device{}() & kMost24Bits) {
  if (!port_.active()) {
    throw Error(ErrorCode::not_connected,
                "port " + std::to_string(options.port) + " of " + device.name() + " is not active");
  }
  gid_ = choose_gid(device.gids(options.port), options.gid);
}

ConnectionDescriptor Pairing::describe(const QueuePair& queue) const {
  ConnectionDescriptor descriptor;
  descriptor.transport = queue.transport();
  descriptor.ethernet = port_.ethernet;
  descriptor.lid = port_.ethernet ? std::uint16_t{0} : port_.lid;
  descriptor.gid = gid_.value;
  descriptor.queue_pair = queue.number();
  descriptor.first_packet = first_packet_;
  descriptor.mtu = port_.mtu;
  descriptor.reads_in = limits_.reads_in;
  return descriptor;
}

void Pairing::connect(QueuePair& queue, const ConnectionDescriptor& peer,
                      std::optional<std::uint32_t> first_packet) {
  if (peer.transport != queue.transport() || peer.ethernet != port_.ethernet) {
    throw Error(ErrorCode::invalid_value,
                queue.described() + ": the peer has another transport or link layer");
  }
  Peer to;
  to.path.port = options_.port;
  to.path.lid = peer.lid;
  // Over InfiniBand too: a port, such as a virtual function's, may be reached by its GID alone, and
  // neither end knows what the other's is.
  to.path.global = !is_unspecified(peer.gid);
  to.path.gid = peer.gid;
  to.path.source_gid = gid_.index;
  to.path.hop_limit = options_.hop_limit;
  to.path.traffic_class = options_.traffic_class;
  to.path.service_level = options_.service_level;
  to.queue_pair = peer.queue_pair;
  to.first_packet = peer.first_packet;
  to.mtu = std::min(port_.mtu, peer.mtu);
  to.reads_in = limits_.reads_in;
  to.receiver_not_ready_timer = options_.receiver_not_ready_timer;
  queue.ready_to_receive(to);
  SendOptions sending = options_.sending;
  sending.first_packet = first_packet.value_or(first_packet_);
  sending.reads_out = std::min(limits_.reads_out, peer.reads_in);
  queue.ready_to_send(sending);
  reads_out_ = sending.reads_out;
}

}  // namespace offload::rdma
