#pragma once

#include <string>
#include <string_view>

#include "packets/program/steering.h"

namespace offload::packets {

/// Directs frames; the first rule that a frame matches applies.
struct Rule {
  std::string text;  ///< as it was written
  offload_rule fields{};
};

/// Reads a rule:
///
///     [PROTOCOL] [vlan ID] [src ADDRESS[/BITS]] [dst ADDRESS[/BITS]] [sport PORT[-PORT]]
///     [dport PORT[-PORT]] [type ICMP-TYPE] [flags SET/LOOKED-AT] to QUEUE[-QUEUE]|stack|drop
///
/// PROTOCOL: any, ip, ip6, udp, tcp, icmp, icmp6. ID: 0 for frames of no VLAN, which have no tag or
/// one with only a priority. Flags: letters of FSRPAU, or "-" for none: "S/SA" is SYN and no ACK.
/// A frame without a field that a rule tests does not match it: fragments have no ports, and a
/// frame with IPv6 extension headers has no protocol. Several queues share the frames by their
/// senders' addresses and ports. QUEUE must be below `queues`. Throws Error (invalid_value).
Rule parse_rule(std::string_view text, unsigned queues);

}  // namespace offload::packets
