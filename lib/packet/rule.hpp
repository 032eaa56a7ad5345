#pragma once

#include <string>
#include <string_view>

#include "packet/program/steering.h"

namespace offload::packet {

/// Which frames go where; the first rule that a frame matches says it.
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
/// one with a priority alone. Flags: letters of FSRPAU, or "-" for none: "S/SA" is SYN and no ACK.
/// A frame that does not have what a rule looks at does not match it: fragments have no ports, and
/// a frame with IPv6 extension headers has no protocol. Several queues share the frames by their
/// senders' addresses and ports. `queues`: below which QUEUE is. Throws Error (invalid_value), with
/// what is wrong.
Rule parse_rule(std::string_view text, unsigned queues);

}  // namespace offload::packet
