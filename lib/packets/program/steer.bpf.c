/* The XDP program of a port: the first rule that a frame matches says where it goes. A frame that
 * no rule matches goes to the kernel's network stack, as all frames do once the port is closed. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "steering.h"

/* Sockets, by hardware queue and queue. */
struct {
  __uint(type, BPF_MAP_TYPE_XSKMAP);
  __uint(max_entries, OFFLOAD_MOST_HARDWARE_QUEUES* OFFLOAD_MOST_QUEUES);
  __type(key, __u32);
  __type(value, __u32);
} sockets SEC(".maps");

/* The rule set that counts, in a map of one: to put another map in its place is one store, and the
 * system call that does it returns when no processor is in a run of this program that began before
 * (the kernel's maybe_wait_bpf_programs()). So a set is never changed while it is read. */
struct rule_set_map {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct offload_rule_set);
} rule_set_0 SEC(".maps"), rule_set_1 SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, 1);
  __type(key, __u32);
  __array(values, struct rule_set_map);
} rule_set SEC(".maps") = {.values = {&rule_set_0}};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, OFFLOAD_RULE_SETS* OFFLOAD_COUNTERS);
  __type(key, __u32);
  __type(value, struct offload_counter);
} counters SEC(".maps");

/* Fields of a frame, as a rule may look at them. */
struct fields {
  __u32 found;
  __u16 family;
  __u8 protocol;
  __u8 tcp_flags;
  __u8 icmp_type;
  __u16 vlan; /* the first identifier of its tags that is not 0; 0: of no VLAN */
  __u16 source_port;
  __u16 destination_port;
  __u32 source[4];
  __u32 destination[4];
};

struct tag {
  __be16 control;
  __be16 next;
};

static __always_inline void* parse_ip(void* at, void* end, struct fields* fields) {
  if (fields->family == ETH_P_IP) {
    struct iphdr* ip = at;
    if ((void*)(ip + 1) > end || ip->version != 4 || ip->ihl < 5) return 0;
    fields->protocol = ip->protocol;
    fields->source[0] = ip->saddr;
    fields->destination[0] = ip->daddr;
    fields->found |= OFFLOAD_MATCH_PROTOCOL | OFFLOAD_MATCH_SOURCE | OFFLOAD_MATCH_DESTINATION;
    /* Only a packet's first fragment has ports, and no fragment has the whole packet. */
    if (ip->frag_off & bpf_htons(0x3fff)) return 0;
    return at + ip->ihl * 4;
  }
  if (fields->family == ETH_P_IPV6) {
    struct ipv6hdr* ip = at;
    if ((void*)(ip + 1) > end || ip->version != 6) return 0;
    fields->protocol = ip->nexthdr; /* an extension header is no protocol that a rule names */
    __builtin_memcpy(fields->source, &ip->saddr, 16);
    __builtin_memcpy(fields->destination, &ip->daddr, 16);
    fields->found |= OFFLOAD_MATCH_PROTOCOL | OFFLOAD_MATCH_SOURCE | OFFLOAD_MATCH_DESTINATION;
    return ip + 1;
  }
  return 0;
}

static __always_inline void parse(void* at, void* end, struct fields* fields) {
  struct ethhdr* ethernet = at;
  if ((void*)(ethernet + 1) > end) return;
  __be16 type = ethernet->h_proto;
  at = ethernet + 1;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD)) break;
    struct tag* tag = at;
    if ((void*)(tag + 1) > end) return;
    type = tag->next;
    if (!fields->vlan) fields->vlan = bpf_ntohs(tag->control) & 0xfff;
    at = tag + 1;
  }
  fields->family = bpf_ntohs(type);
  fields->found = OFFLOAD_MATCH_FAMILY | OFFLOAD_MATCH_VLAN;
  at = parse_ip(at, end, fields);
  if (!at) return;
  __u8* bytes = at;
  if (fields->protocol == IPPROTO_ICMP || fields->protocol == IPPROTO_ICMPV6) {
    if ((void*)(bytes + 1) > end) return;
    fields->icmp_type = bytes[0];
    fields->found |= OFFLOAD_MATCH_ICMP_TYPE;
    return;
  }
  if (fields->protocol != IPPROTO_UDP && fields->protocol != IPPROTO_TCP) return;
  __be16* ports = at;
  if ((void*)(ports + 2) > end) return;
  fields->source_port = bpf_ntohs(ports[0]);
  fields->destination_port = bpf_ntohs(ports[1]);
  fields->found |= OFFLOAD_MATCH_SOURCE_PORT | OFFLOAD_MATCH_DESTINATION_PORT;
  if (fields->protocol != IPPROTO_TCP) return;
  if ((void*)(bytes + 14) > end) return;
  fields->tcp_flags = bytes[13];
  fields->found |= OFFLOAD_MATCH_TCP_FLAGS;
}

static __always_inline int is_in(const __u32* address, const __u32* prefix, const __u32* mask) {
  return !(((address[0] ^ prefix[0]) & mask[0]) | ((address[1] ^ prefix[1]) & mask[1]) |
           ((address[2] ^ prefix[2]) & mask[2]) | ((address[3] ^ prefix[3]) & mask[3]));
}

static __always_inline int matches(const struct offload_rule* rule, const struct fields* fields) {
  __u32 wanted = rule->fields;
  if ((wanted & fields->found) != wanted) return 0;
  if ((wanted & OFFLOAD_MATCH_FAMILY) && rule->family != fields->family) return 0;
  if ((wanted & OFFLOAD_MATCH_VLAN) && rule->vlan != fields->vlan) return 0;
  if ((wanted & OFFLOAD_MATCH_PROTOCOL) && rule->protocol != fields->protocol) return 0;
  if ((wanted & OFFLOAD_MATCH_SOURCE) && !is_in(fields->source, rule->source, rule->source_mask)) {
    return 0;
  }
  if ((wanted & OFFLOAD_MATCH_DESTINATION) &&
      !is_in(fields->destination, rule->destination, rule->destination_mask)) {
    return 0;
  }
  if ((wanted & OFFLOAD_MATCH_SOURCE_PORT) && (fields->source_port < rule->source_ports[0] ||
                                               fields->source_port > rule->source_ports[1])) {
    return 0;
  }
  if ((wanted & OFFLOAD_MATCH_DESTINATION_PORT) &&
      (fields->destination_port < rule->destination_ports[0] ||
       fields->destination_port > rule->destination_ports[1])) {
    return 0;
  }
  if ((wanted & OFFLOAD_MATCH_ICMP_TYPE) && rule->icmp_type != fields->icmp_type) return 0;
  return !(wanted & OFFLOAD_MATCH_TCP_FLAGS) ||
         (fields->tcp_flags & rule->tcp_flags_mask) == rule->tcp_flags;
}

SEC("xdp")
int steer(struct xdp_md* context) {
  void* end = (void*)(long)context->data_end;
  void* begin = (void*)(long)context->data;
  __u32 first = 0;
  void* map = bpf_map_lookup_elem(&rule_set, &first);
  if (!map) return XDP_PASS;
  struct offload_rule_set* set = bpf_map_lookup_elem(map, &first);
  if (!set) return XDP_PASS;

  struct fields fields = {};
  parse(begin, end, &fields);
  __u32 matched = OFFLOAD_MOST_RULES;
  __u32 target = OFFLOAD_TO_STACK;
  __u32 spread = 0;
  for (__u32 i = 0; i < OFFLOAD_MOST_RULES; ++i) {
    if (i >= set->count) break;
    if (matches(&set->rules[i], &fields)) {
      matched = i;
      target = set->rules[i].target;
      spread = set->rules[i].spread;
      break;
    }
  }
  __u32 index = (set->slot ? OFFLOAD_COUNTERS : 0) + matched;
  struct offload_counter* counter = bpf_map_lookup_elem(&counters, &index);
  if (counter) {
    ++counter->packets;
    counter->bytes += end - begin;
  }
  if (target == OFFLOAD_TO_STACK) return XDP_PASS;
  if (target >= OFFLOAD_MOST_QUEUES || context->rx_queue_index >= OFFLOAD_MOST_HARDWARE_QUEUES) {
    return target == OFFLOAD_TO_NOBODY ? XDP_DROP : XDP_PASS;
  }
  /* No branch after this depends on the hash: the verifier would follow each of its values. */
  if (spread > 1) {
    target +=
        offload_queue_of_sender(fields.source, fields.source_port, fields.destination_port, spread);
    target &= OFFLOAD_MOST_QUEUES - 1;
  }
  /* A hardware queue that the port does not have: to the stack. */
  return bpf_redirect_map(&sockets, context->rx_queue_index * OFFLOAD_MOST_QUEUES + target,
                          XDP_PASS);
}

/* It calls nothing that wants the GPL. */
char steer_license[] SEC("license") = "Apache-2.0";
