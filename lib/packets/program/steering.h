#ifndef OFFLOAD_PACKET_STEERING_H
#define OFFLOAD_PACKET_STEERING_H

#include <linux/types.h>

/* Shared by the XDP program and the process that loads it: plain C, as the program is. */

enum {
  OFFLOAD_MOST_RULES = 32,
  OFFLOAD_MOST_QUEUES = 16, /* of one hardware queue */
  OFFLOAD_MOST_HARDWARE_QUEUES = 64,
  OFFLOAD_RULE_SETS = 2,                    /* the one that counts, and the next one */
  OFFLOAD_COUNTERS = OFFLOAD_MOST_RULES + 1 /* of each rule, and of frames no rule matched */
};

/* The fields that a rule compares. A frame that does not have the field does not match. */
enum {
  OFFLOAD_MATCH_FAMILY = 1,
  OFFLOAD_MATCH_PROTOCOL = 2,
  OFFLOAD_MATCH_SOURCE = 4,
  OFFLOAD_MATCH_DESTINATION = 8,
  OFFLOAD_MATCH_SOURCE_PORT = 16,
  OFFLOAD_MATCH_DESTINATION_PORT = 32,
  OFFLOAD_MATCH_TCP_FLAGS = 64,
  OFFLOAD_MATCH_ICMP_TYPE = 128,
  OFFLOAD_MATCH_VLAN = 256
};

enum {
  OFFLOAD_TO_STACK = 0xffff, /* the kernel's own */
  OFFLOAD_TO_NOBODY = 0xfffe /* dropped */
};

struct offload_rule {
  __u32 fields;
  __u16 target; /* a queue, or one of the two above */
  __u16 spread; /* so many queues from that on share the frames, by their senders; 0, 1: it alone */
  __u16 vlan;   /* 0: of no VLAN */
  __u16 family; /* ethertype: 0x0800, 0x86dd */
  __u8 protocol;
  __u8 tcp_flags_mask;
  __u8 tcp_flags;
  __u8 icmp_type;
  __u16 source_ports[2]; /* the lowest and the highest, in host order */
  __u16 destination_ports[2];
  /* As words in network order; an IPv4 address is the first. */
  __u32 source[4];
  __u32 source_mask[4];
  __u32 destination[4];
  __u32 destination_mask[4];
};

struct offload_rule_set {
  __u32 count;
  __u32 slot; /* which counters are its own: below OFFLOAD_RULE_SETS */
  struct offload_rule rules[OFFLOAD_MOST_RULES];
};

struct offload_counter {
  __u64 packets;
  __u64 bytes;
};

/* Returns which of `queues` takes the frames of a sender: the same for each frame of it. `source`
 * is its address as in a rule. One round is not enough: the high bits would depend on the source
 * port by one multiplication alone, and sockets with every second port would share one or two
 * queues. */
static inline __attribute__((always_inline)) __u32 offload_queue_of_sender(const __u32* source,
                                                                           __u32 source_port,
                                                                           __u32 destination_port,
                                                                           __u32 queues) {
  __u32 hash = source[0] ^ source[1] ^ source[2] ^ source[3];
  hash ^= source_port << 16 | destination_port;
  for (int round = 0; round < 2; ++round) {
    hash ^= hash >> 16;
    hash *= 0x9e3779b1; /* 2^32 by the golden ratio */
  }
  return (hash >> 16) * queues >> 16;
}

#endif
