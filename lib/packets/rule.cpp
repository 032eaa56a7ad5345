#include "packets/rule.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/if_ether.h>
#include <netinet/in.h>

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"

namespace offload::packets {
namespace {

constexpr unsigned kMostVlan = 4094;           // IEEE 802.1Q: 4095 is reserved
constexpr std::string_view kFlags = "FSRPAU";  // from bit 0 on (RFC 9293, section 3.1)

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::optional<unsigned> number_of(std::string_view text, unsigned most) {
  const auto number = core::parse_number<unsigned>(text);
  return number && *number <= most ? number : std::nullopt;
}

bool read_ports(std::string_view text, __u16 (&ports)[2]) {
  const std::size_t dash = text.find('-');
  const auto low = number_of(text.substr(0, dash), 65535);
  const auto high = dash == std::string_view::npos ? low : number_of(text.substr(dash + 1), 65535);
  if (!low || !high || *low > *high) return false;
  ports[0] = static_cast<__u16>(*low);
  ports[1] = static_cast<__u16>(*high);
  return true;
}

/// Sets the family too, which has to be the one of an address before.
bool read_address(std::string_view text, offload_rule& rule, __u32 (&address)[4],
                  __u32 (&mask)[4]) {
  const std::size_t slash = text.find('/');
  const std::string host(text.substr(0, slash));
  const bool is_v6 = host.find(':') != std::string::npos;
  if (::inet_pton(is_v6 ? AF_INET6 : AF_INET, host.c_str(), address) != 1) return false;
  const unsigned most = is_v6 ? 128 : 32;
  const auto bits =
      slash == std::string_view::npos ? most : number_of(text.substr(slash + 1), most);
  if (!bits) return false;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned own = *bits <= i * 32 ? 0 : std::min(*bits - i * 32, 32U);
    mask[i] = own == 0 ? 0 : htonl(0xffff'ffffU << (32 - own));
    address[i] &= mask[i];
  }
  const auto family = static_cast<__u16>(is_v6 ? ETH_P_IPV6 : ETH_P_IP);
  if ((rule.fields & OFFLOAD_MATCH_FAMILY) != 0 && rule.family != family) return false;
  rule.fields |= OFFLOAD_MATCH_FAMILY;
  rule.family = family;
  return true;
}

std::optional<__u8> read_flags(std::string_view text) {
  if (text == "-") return 0;
  unsigned bits = 0;
  for (const char letter : text) {
    const std::size_t bit = kFlags.find(letter);
    if (bit == std::string_view::npos) return std::nullopt;
    bits |= 1U << bit;
  }
  return static_cast<__u8>(bits);
}

bool read_tcp_flags(std::string_view text, offload_rule& rule) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const auto set = read_flags(text.substr(0, slash));
  const auto mask = read_flags(text.substr(slash + 1));
  if (!set || !mask || *mask == 0 || (*set & ~*mask) != 0) return false;
  rule.tcp_flags = *set;
  rule.tcp_flags_mask = *mask;
  rule.fields |= OFFLOAD_MATCH_TCP_FLAGS;
  return true;
}

bool read_protocol(std::string_view word, offload_rule& rule) {
  struct Named {
    std::string_view name;
    __u32 fields;
    __u16 family;
    __u8 protocol;
  };
  constexpr std::array kProtocols = {
      Named{"any", 0, 0, 0},
      Named{"ip", OFFLOAD_MATCH_FAMILY, ETH_P_IP, 0},
      Named{"ip6", OFFLOAD_MATCH_FAMILY, ETH_P_IPV6, 0},
      Named{"udp", OFFLOAD_MATCH_PROTOCOL, 0, IPPROTO_UDP},
      Named{"tcp", OFFLOAD_MATCH_PROTOCOL, 0, IPPROTO_TCP},
      Named{"icmp", OFFLOAD_MATCH_FAMILY | OFFLOAD_MATCH_PROTOCOL, ETH_P_IP, IPPROTO_ICMP},
      Named{"icmp6", OFFLOAD_MATCH_FAMILY | OFFLOAD_MATCH_PROTOCOL, ETH_P_IPV6, IPPROTO_ICMPV6},
  };
  for (const Named& each : kProtocols) {
    if (each.name != word) continue;
    rule.fields |= each.fields;
    rule.family = each.family;
    rule.protocol = each.protocol;
    return true;
  }
  return false;
}

bool read_target(std::string_view word, unsigned queues, offload_rule& rule) {
  if (word == "stack") {
    rule.target = OFFLOAD_TO_STACK;
  } else if (word == "drop") {
    rule.target = OFFLOAD_TO_NOBODY;
  } else {
    const std::size_t dash = word.find('-');
    const auto first = number_of(word.substr(0, dash), queues - 1);
    const auto last = dash == word.npos ? first : number_of(word.substr(dash + 1), queues - 1);
    if (!first || !last || *last < *first) return false;
    rule.target = static_cast<__u16>(*first);
    rule.spread = static_cast<__u16>(*last - *first + 1);
  }
  return true;
}

bool read_field(std::string_view name, std::string_view value, offload_rule& rule) {
  if (name == "src") {
    rule.fields |= OFFLOAD_MATCH_SOURCE;
    return read_address(value, rule, rule.source, rule.source_mask);
  }
  if (name == "dst") {
    rule.fields |= OFFLOAD_MATCH_DESTINATION;
    return read_address(value, rule, rule.destination, rule.destination_mask);
  }
  if (name == "sport") {
    rule.fields |= OFFLOAD_MATCH_SOURCE_PORT;
    return read_ports(value, rule.source_ports);
  }
  if (name == "dport") {
    rule.fields |= OFFLOAD_MATCH_DESTINATION_PORT;
    return read_ports(value, rule.destination_ports);
  }
  if (name == "vlan") {
    const auto vlan = number_of(value, kMostVlan);
    if (!vlan) return false;
    rule.fields |= OFFLOAD_MATCH_VLAN;
    rule.vlan = static_cast<__u16>(*vlan);
    return true;
  }
  if (name == "type") {
    const auto type = number_of(value, 255);
    if (!type) return false;
    rule.fields |= OFFLOAD_MATCH_ICMP_TYPE;
    rule.icmp_type = static_cast<__u8>(*type);
    return true;
  }
  return name == "flags" && read_tcp_flags(value, rule);
}

}  // namespace

Rule parse_rule(std::string_view text, unsigned queues) {
  const auto refuse = [text](const std::string& why) {
    throw core::Error(core::ErrorCode::invalid_value, fmt::format("rule '{}': {}", text, why));
  };
  Rule rule{std::string(text), {}};
  std::span<const std::string_view> words;
  const auto all = words_of(text);
  words = all;
  if (words.size() % 2 == 1 && read_protocol(words.front(), rule.fields)) words = words.subspan(1);
  if (words.size() < 2 || words.size() % 2 != 0 || words[words.size() - 2] != "to") {
    refuse(
        "expected [PROTOCOL] [vlan ID] [src|dst ADDRESS[/BITS]] [sport|dport PORT[-PORT]] [type "
        "ICMP-TYPE] [flags SET/MASK] to QUEUE[-QUEUE]|stack|drop");
  }
  for (; words.size() > 2; words = words.subspan(2)) {
    if (!read_field(words[0], words[1], rule.fields)) {
      refuse(fmt::format("cannot read '{} {}'", words[0], words[1]));
    }
  }
  if (!read_target(words[1], queues, rule.fields)) {
    refuse(fmt::format("'to {}' is not allowed; use 0 to {}, a range such as 0-{}, stack or drop",
                       words[1], queues - 1, queues - 1));
  }
  return rule;
}

}  // namespace offload::packets
