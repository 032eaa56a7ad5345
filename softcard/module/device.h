/* SPDX-License-Identifier: GPL-2.0 */
/* The objects of the module, and the functions that its files have in common. */
#ifndef SOFTCARD_DEVICE_H
#define SOFTCARD_DEVICE_H

#include <linux/mutex.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "softcard.h"

#define MAX_ENTRIES (1 << 15)
#define FEW_ENTRIES (1 << 12)
#define MAX_CQE (1 << 22)
#define FIRST_NUMBER 0x40
#define MAX_NUMBER 0x3ffff
/* Areas are this far apart in the device file. */
#define AREA_SHIFT 36

/* Pages that the card can map. */
struct area {
	u32 token;
	struct ib_umem *umem;
	struct page *page; /* instead of umem */
	bool writable;
};

struct soft_pd {
	struct ib_pd ib;
	struct ib_ucontext *owner; /* NULL: the kernel */
	u32 number;
};

struct soft_uar {
	struct rdma_user_mmap_entry entry;
	struct ib_ucontext *owner;
	struct area area;
	u32 number;
	bool told;
};

struct soft_mr {
	struct ib_mr ib;
	struct area area;
	u32 index;
};

struct soft_cq {
	struct ib_cq ib;
	struct area entries, record;
	u32 number;
	struct soft_object *devx; /* not made by verbs */
	/* The kernel's own */
	bool is_kernel, is_armed;
	struct list_head held;
};

struct soft_ah {
	struct ib_ah ib;
	struct rdma_ah_attr attr;
};

struct soft_srq {
	struct ib_srq ib;
	struct area entries, record;
	struct ib_srq_attr attr;
	u32 number;
	struct soft_object *devx; /* not made by verbs */
};

struct soft_qp {
	struct ib_qp ib;
	struct area entries, record;
	struct area sends; /* of raw packets; else they are among the entries */
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
	struct mutex change;
	bool is_manager;
};

struct soft_device {
	struct ib_device ib;
};

struct soft_context {
	struct ib_ucontext ib;
	u32 number;
	bool has_devx;
};

struct soft_object;

extern struct soft_device *device;
/* Objects of one kind, made by verbs or by the card's own commands. */
struct soft_kind {
	struct xarray objects;
	u32 next; /* A number is used again as late as possible. */
};

#define SOFT_KIND(kind) struct soft_kind kind = { .objects = XARRAY_INIT(kind.objects, XA_FLAGS_ALLOC1) }

extern struct soft_kind cqs, srqs, qps;
/* Held while an event goes to an object, and while the object disappears. */
extern struct mutex objects;

/* card.c: the process behind the device */
extern u32 card_flags;
extern bool card_ready;
extern bool card_failed; /* it says so, and does not work yet */

/* Returns the maximum number of blocks of a send queue, for verbs and for the card's own commands. */
static inline u32 most_blocks(void)
{
	return card_flags & SOFTCARD_SHORT_QUEUES ? FEW_ENTRIES : MAX_ENTRIES;
}

int start_card(void);
void stop_card(void);
/*
 * Asks the card, and waits. Returns its answer; -ETIMEDOUT if it does not answer for long. From then
 * on there is no card until another process opens the device file.
 */
int ask(u32 kind, u32 number, struct softcard_request *request);
/*
 * Does the same. When the card has done it, sets *place before a later message of the card can
 * change it.
 */
int ask_and_set(u32 kind, u32 number, struct softcard_request *request, u32 *place, u32 value);
/*
 * Removes an area and the card's mappings of it. A card that did not answer keeps them, and the
 * pages, until it closes the device file.
 */
void take_from_card(struct area *area);

/* area.c: pages of owners */
extern struct xarray areas;
int name_area(struct area *area);
/* Precondition: the card has answered that it no longer uses it, or there is no card that answers. */
void free_area(struct area *area);
int take_umem(struct area *area, struct ib_umem *umem, int access);
int pin(struct area *area, u64 address, u64 length, int access);
int pin_ring(struct area *entries, u64 address, u64 length, struct area *record, u64 record_at);
void describe(const struct area *area, struct softcard_area *to);

/* uar.c: pages of doorbells */
extern const struct uapi_definition softcard_definitions[];
void free_uar(struct rdma_user_mmap_entry *entry);
int map_uar(struct ib_ucontext *context, struct vm_area_struct *vma);
/* Returns whether a page of doorbells with this number is one of this owner. */
bool owns_uar(struct ib_ucontext *owner, u32 number);
struct ib_ucontext *owner_of(struct ib_udata *udata);
int map_page(struct vm_area_struct *vma, struct page *page);

/* memory.c: protection domains and memory */
u32 number_of(struct ib_pd *ib);
/* Returns whether a protection domain with this number is one of this owner. */
bool owns_pd(struct ib_ucontext *owner, u32 number);

/* devx.c: the card's own commands */
extern const struct uapi_definition devx_definitions[];

/* mad.c: the queue pair of the kernel's connection manager */
void init_kernel_cq(struct soft_cq *cq);
void drain_kernel_cq(struct soft_cq *cq);
int poll_kernel_cq(struct ib_cq *ib, int count, struct ib_wc *wc);
int arm_kernel_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags);
int create_manager(struct soft_qp *qp);
void flush_manager(struct soft_qp *qp);
void destroy_manager(struct soft_qp *qp);
int post_manager_recv(struct ib_qp *ib, const struct ib_recv_wr *first, const struct ib_recv_wr **bad);
int post_manager_send(struct ib_qp *ib, const struct ib_send_wr *first, const struct ib_send_wr **bad);
void deliver_mad(const struct softcard_mad *mad);
void stop_messages(void);

/* Each of these files has its part of the device's operations. */
extern const struct ib_device_ops flow_operations, mad_operations, memory_operations, queue_operations,
	pair_operations;

/* Gives an object a number, by which it is found from then on. Returns -ENOMEM if there is none. */
int give_number(struct soft_kind *kind, void *object, u32 *to);
/*
 * Removes an object to which events go; call it before the memory is freed. Precondition: the card
 * no longer has the object, as the next one may get its number.
 */
void forget(struct soft_kind *kind, u32 number);

#endif
