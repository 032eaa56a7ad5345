/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The protocol between the kernel module and the card, which is a process, over /dev/softcard.
 *
 * The module writes nothing into rings or completion queues, and reads nothing of them. It tells the
 * card about each object, with the owner's pinned pages, which the card maps by an offset of the
 * device file. The card answers each request, and reports events.
 */
#ifndef SOFTCARD_H
#define SOFTCARD_H

#include <linux/types.h>

#define SOFTCARD_PATH "/dev/softcard"
#define SOFTCARD_VERSION 3

/* Requests of the module. The card reads one at a time, and answers with SOFTCARD_ANSWER. */
enum softcard_request_kind {
	SOFTCARD_NEW_UAR = 1,
	SOFTCARD_FREE_UAR,
	SOFTCARD_NEW_MR,
	SOFTCARD_FREE_MR,
	SOFTCARD_NEW_CQ,
	SOFTCARD_FREE_CQ,
	SOFTCARD_NEW_SRQ,
	SOFTCARD_MODIFY_SRQ,
	SOFTCARD_FREE_SRQ,
	SOFTCARD_NEW_QP,
	SOFTCARD_MODIFY_QP,
	SOFTCARD_FREE_QP,
	SOFTCARD_SEND_MAD, /* to the card of the address in mad.to */
	SOFTCARD_NEW_FLOW,
	SOFTCARD_FREE_FLOW,
};

/* Memory of an owner: mapped from the device file, whole pages. */
struct softcard_area {
	__u64 map_offset;
	__u64 map_length;
	__u64 begin; /* of the area within the mapping */
	__u64 length;
};

struct softcard_mr {
	struct softcard_area area;
	__u64 iova;
	__u32 access; /* IB_ACCESS_*; the pages can be written only with one that writes */
	__u32 pd;
};

struct softcard_cq {
	struct softcard_area entries;
	struct softcard_area record;
	__u32 count;
	__u32 uar;
	__u32 ignores_overrun;
	__u32 reserved;
};

struct softcard_srq {
	struct softcard_area entries;
	struct softcard_area record;
	__u32 count;
	__u32 shift; /* of an entry's bytes */
	__u32 pd;
	__u32 limit;
	__u32 is_cyclic; /* entries of pieces alone, one behind the other; else a linked list */
	__u32 reserved;
};

struct softcard_qp {
	struct softcard_area entries; /* receives first, then sends; for raw packets, receives alone */
	struct softcard_area sends; /* for raw packets */
	struct softcard_area record;
	__u32 send_blocks;
	__u32 receives;
	__u32 receive_shift;
	__u32 send_cq;
	__u32 receive_cq;
	__u32 srq; /* 0: none */
	__u32 uar;
	__u32 pd;
	__u32 is_unreliable; /* IB_QPT_UC; else IB_QPT_RC */
	__u32 without_record; /* the doorbell itself says how far it has sends */
	__u32 is_master; /* its sends may wait for completions of other queues */
	__u32 is_raw; /* IB_QPT_RAW_PACKET */
	__u32 owner; /* of raw packets: the number of a process's context */
	__u32 receives_own; /* raw packets of the same owner */
};

/* Fields of an Ethernet frame, in network order. */
struct softcard_fields {
	__u8 dst_mac[6];
	__u8 src_mac[6];
	__u8 ether_type[2]; /* behind VLAN tags */
	__u8 tag[2]; /* the first one */
	__u8 src_ip[16]; /* of IPv4: the first four bytes */
	__u8 dst_ip[16];
	__u8 src_port[2];
	__u8 dst_port[2];
	__u8 protocol; /* of IP */
	__u8 is_tagged;
	__u8 reserved[2];
};

/* Steers frames that have the bits of `value` where `mask` has ones to a queue pair for raw packets. */
struct softcard_flow {
	__u32 qp;
	__u32 priority; /* a lower one comes first */
	struct softcard_fields value;
	struct softcard_fields mask;
};

/* The fields of softcard_state that a change has. */
enum softcard_state_mask {
	SOFTCARD_STATE = 1 << 0,
	SOFTCARD_ACCESS = 1 << 1,
	SOFTCARD_PATH_CHANGE = 1 << 2,
	SOFTCARD_RETRIES = 1 << 3,
	SOFTCARD_RNR_RETRIES = 1 << 4,
	SOFTCARD_TIMEOUT = 1 << 5,
	SOFTCARD_RNR_TIMER = 1 << 6,
	SOFTCARD_SEND_PSN = 1 << 7,
	SOFTCARD_RECEIVE_PSN = 1 << 8,
	SOFTCARD_PEER = 1 << 9,
};

struct softcard_state {
	__u32 mask;
	__u32 state; /* IB_QPS_* */
	__u32 access;
	__u32 peer;
	__u32 send_psn;
	__u32 receive_psn;
	__u8 retries;
	__u8 rnr_retries;
	__u8 timeout;
	__u8 rnr_timer;
	__u32 reserved;
	__u8 own_gid[16];
	__u8 peer_gid[16];
};

/* A message of the kernel's connection manager. */
struct softcard_mad {
	__u8 from[16]; /* GIDs */
	__u8 to[16];
	__u8 bytes[256];
};

struct softcard_request {
	__u64 id;
	__u32 kind;
	__u32 number; /* of the object, the key of a memory */
	union {
		struct softcard_area uar;
		struct softcard_mr mr;
		struct softcard_cq cq;
		struct softcard_srq srq;
		struct softcard_qp qp;
		struct softcard_state state;
		struct softcard_mad mad;
		struct softcard_flow flow;
		__u8 room[304];
	};
};

/* Messages of the card. */
enum softcard_message_kind {
	SOFTCARD_CONFIGURE = 1, /* first; value: softcard_flags */
	SOFTCARD_ANSWER, /* value: 0 or a negative errno */
	SOFTCARD_COMPLETION_EVENT, /* number: the queue that was armed */
	SOFTCARD_CQ_EVENT, /* value: IB_EVENT_* */
	SOFTCARD_SRQ_EVENT,
	SOFTCARD_QP_EVENT,
	SOFTCARD_QP_STATE, /* value: the state that the card changed to itself */
	SOFTCARD_DEVICE_EVENT,
	SOFTCARD_MAD, /* from another card; a struct softcard_mad follows */
};

enum softcard_flags {
	SOFTCARD_NO_WRITE_COMBINING = 1 << 0,
	SOFTCARD_NO_REGISTERS = 1 << 1,
	SOFTCARD_SHORT_QUEUES = 1 << 8, /* of sends */
};

struct softcard_message {
	__u32 kind;
	__u32 number;
	__u64 id; /* of the request */
	__s32 value;
	__u32 version;
};

/* The page at offset 0 of the device file: the card reads the file when this changes. */
struct softcard_page {
	__u32 requests;
};

#endif
