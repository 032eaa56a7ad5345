// SPDX-License-Identifier: GPL-2.0
/*
 * The queue pair of number 1, by which the kernel's connection manager exchanges its messages. It
 * and its completion queues are the kernel's own, and no card carries them out: a message goes to
 * this queue pair itself, or through the card to that of another machine.
 */
#include <linux/io.h>
#include <linux/ip.h>
#include <linux/workqueue.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "device.h"

#define GRH_BYTES 40

struct held_receive {
	struct list_head link;
	struct ib_cqe *cqe;
	struct ib_sge piece;
};

struct held_completion {
	struct list_head link;
	struct ib_wc wc;
};

struct message {
	struct list_head link;
	struct softcard_mad mad;
};

static DEFINE_SPINLOCK(lock);
static struct soft_qp *manager;
static LIST_HEAD(receives);
static LIST_HEAD(messages);

void init_kernel_cq(struct soft_cq *cq)
{
	cq->is_kernel = true;
	INIT_LIST_HEAD(&cq->held);
}

void drain_kernel_cq(struct soft_cq *cq)
{
	struct held_completion *each, *next;

	list_for_each_entry_safe(each, next, &cq->held, link)
		kfree(each);
}

/* The lock is held. Returns whether the owner wants to know of it. */
static bool add_completion(struct soft_cq *cq, const struct ib_wc *wc)
{
	struct held_completion *held = kzalloc(sizeof(*held), GFP_ATOMIC);
	bool wanted = cq->is_armed;

	if (!held)
		return false;
	held->wc = *wc;
	list_add_tail(&held->link, &cq->held);
	cq->is_armed = false;
	return wanted;
}

static void notify(struct soft_cq *cq)
{
	if (cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

int poll_kernel_cq(struct ib_cq *ib, int count, struct ib_wc *wc)
{
	struct soft_cq *cq = container_of(ib, struct soft_cq, ib);
	struct held_completion *first;
	unsigned long flags;
	int polled = 0;

	spin_lock_irqsave(&lock, flags);
	while (polled < count && !list_empty(&cq->held)) {
		first = list_first_entry(&cq->held, struct held_completion, link);
		list_del(&first->link);
		wc[polled++] = first->wc;
		kfree(first);
	}
	spin_unlock_irqrestore(&lock, flags);
	return polled;
}

int arm_kernel_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags)
{
	struct soft_cq *cq = container_of(ib, struct soft_cq, ib);
	unsigned long saved;
	bool missed;

	spin_lock_irqsave(&lock, saved);
	cq->is_armed = true;
	missed = flags & IB_CQ_REPORT_MISSED_EVENTS && !list_empty(&cq->held);
	spin_unlock_irqrestore(&lock, saved);
	return missed;
}

int create_manager(struct soft_qp *qp)
{
	unsigned long flags;
	int error = 0;

	spin_lock_irqsave(&lock, flags);
	if (manager)
		error = -EBUSY;
	else
		manager = qp;
	spin_unlock_irqrestore(&lock, flags);
	qp->is_manager = true;
	qp->ib.qp_num = 1;
	return error;
}

/* Flushes what is posted, as for a change to the error state too. */
void flush_manager(struct soft_qp *qp)
{
	struct soft_cq *cq = container_of(qp->ib.recv_cq, struct soft_cq, ib);
	struct held_receive *each, *next;
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .qp = &qp->ib };
	bool wanted = false;
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	list_for_each_entry_safe(each, next, &receives, link) {
		wc.wr_cqe = each->cqe;
		wanted |= add_completion(cq, &wc);
		list_del(&each->link);
		kfree(each);
	}
	spin_unlock_irqrestore(&lock, flags);
	if (wanted)
		notify(cq);
}

void destroy_manager(struct soft_qp *qp)
{
	struct held_receive *each, *next;
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	if (manager == qp)
		manager = NULL;
	list_for_each_entry_safe(each, next, &receives, link) {
		list_del(&each->link);
		kfree(each);
	}
	spin_unlock_irqrestore(&lock, flags);
}

int post_manager_recv(struct ib_qp *ib, const struct ib_recv_wr *first, const struct ib_recv_wr **bad)
{
	struct held_receive *held;
	unsigned long flags;

	for (; first; first = first->next) {
		held = kzalloc(sizeof(*held), GFP_ATOMIC);
		if (!held || first->num_sge != 1) {
			kfree(held);
			*bad = first;
			return held ? -EINVAL : -ENOMEM;
		}
		held->cqe = first->wr_cqe;
		held->piece = first->sg_list[0];
		spin_lock_irqsave(&lock, flags);
		list_add_tail(&held->link, &receives);
		spin_unlock_irqrestore(&lock, flags);
	}
	return 0;
}

/* Without an IOMMU the address of a device is that of the memory. */
static void *memory_at(u64 address)
{
	return phys_to_virt(address);
}

void deliver_mad(const struct softcard_mad *mad)
{
	struct held_receive *receive;
	struct soft_cq *cq = NULL;
	struct iphdr *ip;
	struct ib_wc wc = {};
	unsigned long flags;
	bool wanted = false;
	u8 *to;

	spin_lock_irqsave(&lock, flags);
	receive = list_first_entry_or_null(&receives, struct held_receive, link);
	if (!manager || !receive || receive->piece.length < GRH_BYTES + sizeof(mad->bytes))
		goto out;
	list_del(&receive->link);
	to = memory_at(receive->piece.addr);
	memset(to, 0, GRH_BYTES);
	memcpy(to + GRH_BYTES, mad->bytes, sizeof(mad->bytes));
	if (ipv6_addr_v4mapped((const struct in6_addr *)mad->from)) {
		ip = (struct iphdr *)(to + 20);
		ip->version = 4;
		ip->ihl = 5;
		memcpy(&ip->saddr, mad->from + 12, 4);
		memcpy(&ip->daddr, mad->to + 12, 4);
		wc.network_hdr_type = RDMA_NETWORK_IPV4;
	} else {
		to[0] = 0x60;
		memcpy(to + 8, mad->from, 16);
		memcpy(to + 24, mad->to, 16);
		wc.network_hdr_type = RDMA_NETWORK_IPV6;
	}
	wc.wr_cqe = receive->cqe;
	wc.opcode = IB_WC_RECV;
	wc.byte_len = GRH_BYTES + sizeof(mad->bytes);
	wc.qp = &manager->ib;
	wc.src_qp = 1;
	wc.port_num = 1;
	wc.wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE;
	cq = container_of(manager->ib.recv_cq, struct soft_cq, ib);
	wanted = add_completion(cq, &wc);
	kfree(receive);
out:
	spin_unlock_irqrestore(&lock, flags);
	if (wanted)
		notify(cq);
}

/* Messages go out here, where waiting is allowed. */
static void send_messages(struct work_struct *work)
{
	struct softcard_request *request = kzalloc(sizeof(*request), GFP_KERNEL);
	struct message *message;

	for (;;) {
		spin_lock_irq(&lock);
		message = list_first_entry_or_null(&messages, struct message, link);
		if (message)
			list_del(&message->link);
		spin_unlock_irq(&lock);
		if (!message)
			break;
		if (!memcmp(message->mad.from, message->mad.to, 16)) {
			deliver_mad(&message->mad);
		} else if (request) {
			request->mad = message->mad;
			ask(SOFTCARD_SEND_MAD, 1, request);
		}
		kfree(message);
	}
	kfree(request);
}

static DECLARE_WORK(sending, send_messages);

void stop_messages(void)
{
	cancel_work_sync(&sending);
}

static int send_one(struct ib_qp *ib, const struct ib_send_wr *wr)
{
	struct soft_cq *cq = container_of(ib->send_cq, struct soft_cq, ib);
	const struct ib_global_route *route;
	struct message *message;
	struct ib_wc wc = { .wr_cqe = wr->wr_cqe, .opcode = IB_WC_SEND, .qp = ib };
	unsigned long flags;
	size_t at = 0;
	bool wanted;
	int i;

	message = kzalloc(sizeof(*message), GFP_ATOMIC);
	if (!message)
		return -ENOMEM;
	for (i = 0; i < wr->num_sge; ++i) {
		size_t size = min_t(size_t, wr->sg_list[i].length, sizeof(message->mad.bytes) - at);

		memcpy(message->mad.bytes + at, memory_at(wr->sg_list[i].addr), size);
		at += size;
	}
	route = rdma_ah_read_grh(&container_of(ud_wr(wr)->ah, struct soft_ah, ib)->attr);
	memcpy(message->mad.to, route->dgid.raw, 16);
	if (route->sgid_attr)
		memcpy(message->mad.from, route->sgid_attr->gid.raw, 16);
	spin_lock_irqsave(&lock, flags);
	list_add_tail(&message->link, &messages);
	wanted = add_completion(cq, &wc);
	spin_unlock_irqrestore(&lock, flags);
	schedule_work(&sending);
	if (wanted)
		notify(cq);
	return 0;
}

int post_manager_send(struct ib_qp *ib, const struct ib_send_wr *first, const struct ib_send_wr **bad)
{
	int error;

	for (; first; first = first->next) {
		error = send_one(ib, first);
		if (error) {
			*bad = first;
			return error;
		}
	}
	return 0;
}

static int create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct soft_ah *ah = container_of(ib, struct soft_ah, ib);
	struct mlx5_ib_create_ah_resp answer = {};
	int error = 0;

	rdma_copy_ah_attr(&ah->attr, init->ah_attr);
	if (udata && udata->outlen) {
		answer.response_length = min(sizeof(answer), udata->outlen);
		memcpy(answer.dmac, init->ah_attr->roce.dmac, ETH_ALEN);
		error = ib_copy_to_udata(udata, &answer, answer.response_length);
	}
	if (error)
		rdma_destroy_ah_attr(&ah->attr);
	return error;
}

static int destroy_ah(struct ib_ah *ib, u32 flags)
{
	rdma_destroy_ah_attr(&container_of(ib, struct soft_ah, ib)->attr);
	return 0;
}

const struct ib_device_ops mad_operations = {
	.create_ah = create_ah,
	.create_user_ah = create_ah,
	.destroy_ah = destroy_ah,

	INIT_RDMA_OBJ_SIZE(ib_ah, soft_ah, ib),
};
