#include "rdma/path/pairing.hpp"

#include <algorithm>
#include <random>
#include <string>

#include "core/error.hpp"

namespace offload::rdma {
namespace {

using core::Error;
using core::ErrorCode;

std::uint8_t at_most_a_byte(int value) noexcept {
  return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
}

}  // namespace

Pairing::Pairing(const DeviceContext& device, const PathOptions& options)
    : options_(options),
      max_qp_rd_atom_(at_most_a_byte(device.attributes().max_qp_rd_atom)),
      max_qp_init_rd_atom_(at_most_a_byte(device.attributes().max_qp_init_rd_atom)),
      port_(device.port(options.port_num)),
      psn_(std::random_device{}() & kMax24Bits) {
  if (port_.state != IBV_PORT_ACTIVE) {
    throw Error(ErrorCode::not_connected, "port " + std::to_string(options.port_num) + " of " +
                                              device.name() + " is not active");
  }
  port_.active_mtu = std::min(port_.active_mtu, options.most_mtu);
  gid_ = choose_gid(device.gids(options.port_num), options.gid);
}

ConnectionDescriptor Pairing::describe(const QueuePair& queue) const {
  ConnectionDescriptor descriptor;
  descriptor.qp_type = queue.type();
  descriptor.ethernet = ethernet();
  descriptor.lid = ethernet() ? std::uint16_t{0} : port_.lid;
  descriptor.gid = gid_.gid;
  descriptor.qp_num = queue.qp_num();
  descriptor.psn = psn_;
  descriptor.mtu = port_.active_mtu;
  descriptor.max_dest_rd_atomic = max_qp_rd_atom_;
  return descriptor;
}

void Pairing::connect(QueuePair& queue, const ConnectionDescriptor& peer,
                      std::optional<std::uint32_t> sq_psn) {
  if (peer.qp_type != queue.type() || peer.ethernet != ethernet()) {
    throw Error(ErrorCode::invalid_value,
                queue.described() + ": the peer has another transport or link layer");
  }
  RtrAttributes rtr = options_.rtr;
  rtr.ah_attr.port_num = options_.port_num;
  rtr.ah_attr.dlid = peer.lid;
  // Over InfiniBand too: a port, such as a virtual function's, may be reachable by its GID alone,
  // and neither end knows which kind of port the other has.
  rtr.ah_attr.is_global = is_unspecified(peer.gid) ? 0 : 1;
  rtr.ah_attr.grh.dgid = peer.gid;
  rtr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_.gid_index);
  rtr.dest_qp_num = peer.qp_num;
  rtr.rq_psn = peer.psn;
  rtr.path_mtu = std::min(port_.active_mtu, peer.mtu);
  rtr.max_dest_rd_atomic = max_qp_rd_atom_;
  queue.ready_to_receive(rtr);
  RtsAttributes rts = options_.rts;
  rts.sq_psn = sq_psn.value_or(psn_);
  rts.max_rd_atomic = std::min(max_qp_init_rd_atom_, peer.max_dest_rd_atomic);
  queue.ready_to_send(rts);
  max_rd_atomic_ = rts.max_rd_atomic;
}

}  // namespace offload::rdma
