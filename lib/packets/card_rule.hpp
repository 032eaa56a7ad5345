#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "packets/card_port.hpp"
#include "packets/rule.hpp"

namespace offload::packets {

/// A rule that a card applies itself: it steers the frames that match to a port as long as it
/// lives. A frame that rules of several ports match gets to that of the lowest priority number.
/// Move-only; the port outlives it.
class CardRule {
 public:
  /// `priority`: 0 comes first. Throws Error: not_supported for a rule that a card cannot apply, or
  /// not this card; not_permitted without CAP_NET_RAW; the device's errors.
  CardRule(const CardPort& port, const Rule& rule, std::uint16_t priority = 0);

 private:
  static int end(ibv_flow* rule);

  rdma::Handle<ibv_flow, end> native_;
};

/// Returns a rule as ibv_create_flow(3) takes it: an ibv_flow_attr, and the specifications behind
/// it. Throws Error (not_supported) for a rule that verbs do not have: ranges of ports, types of
/// ICMP, flags of TCP, frames of no VLAN, and targets other than one queue.
std::vector<std::byte> flow_of(const Rule& rule, std::uint16_t priority);

}  // namespace offload::packets
