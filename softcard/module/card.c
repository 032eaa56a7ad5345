// SPDX-License-Identifier: GPL-2.0
/* The device file by which a process is the card: requests, answers, events, and pages to be mapped. */
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>

#include "device.h"

struct call {
	struct list_head link;
	struct softcard_request request;
	struct completion done;
	int error;
};

#define ANSWER_LIMIT (30 * HZ)

static DEFINE_MUTEX(calls);
static struct page *state_page;
static LIST_HEAD(waiting); /* to be read */
static LIST_HEAD(under_way); /* to be answered */
static DECLARE_WAIT_QUEUE_HEAD(readers);
static struct file *card;
u32 card_flags;
bool card_ready;
static u64 next_call;

int ask(u32 kind, u32 number, struct softcard_request *request)
{
	struct call *call = kzalloc(sizeof(*call), GFP_KERNEL);
	struct softcard_page *page = page_address(state_page);
	int error;

	if (!call)
		return -ENOMEM;
	if (request)
		call->request = *request;
	call->request.kind = kind;
	call->request.number = number;
	init_completion(&call->done);
	call->error = -ETIMEDOUT;

	mutex_lock(&calls);
	if (!card_ready) {
		mutex_unlock(&calls);
		kfree(call);
		return -ENODEV;
	}
	call->request.id = ++next_call;
	list_add_tail(&call->link, &waiting);
	WRITE_ONCE(page->requests, page->requests + 1);
	mutex_unlock(&calls);
	wake_up(&readers);

	if (!wait_for_completion_timeout(&call->done, ANSWER_LIMIT))
		pr_err("softcard: the card does not answer request %u\n", kind);
	mutex_lock(&calls);
	list_del(&call->link);
	error = call->error;
	mutex_unlock(&calls);
	kfree(call);
	return error;
}

static int card_open(struct inode *inode, struct file *file)
{
	int error = 0;

	mutex_lock(&calls);
	if (card)
		error = -EBUSY;
	else
		card = file;
	mutex_unlock(&calls);
	return error;
}

static int card_release(struct inode *inode, struct file *file)
{
	struct ib_event event = { .device = &device->ib, .event = IB_EVENT_DEVICE_FATAL };
	struct call *call;

	mutex_lock(&calls);
	card_ready = false;
	card = NULL;
	list_for_each_entry(call, &waiting, link) {
		call->error = -ENODEV;
		complete(&call->done);
	}
	list_for_each_entry(call, &under_way, link) {
		call->error = -ENODEV;
		complete(&call->done);
	}
	mutex_unlock(&calls);
	event.element.port_num = 1;
	ib_dispatch_event(&event);
	return 0;
}

static ssize_t card_read(struct file *file, char __user *to, size_t size, loff_t *at)
{
	struct softcard_request request;
	struct call *call;

	if (size < sizeof(request))
		return -EINVAL;
	for (;;) {
		mutex_lock(&calls);
		call = list_first_entry_or_null(&waiting, struct call, link);
		if (call)
			break;
		mutex_unlock(&calls);
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(readers, !list_empty(&waiting)))
			return -ERESTARTSYS;
	}
	request = call->request;
	list_move_tail(&call->link, &under_way);
	mutex_unlock(&calls);
	if (copy_to_user(to, &request, sizeof(request)))
		return -EFAULT;
	return sizeof(request);
}

static __poll_t card_poll(struct file *file, poll_table *table)
{
	poll_wait(file, &readers, table);
	return list_empty(&waiting) ? 0 : EPOLLIN | EPOLLRDNORM;
}

static void answered(u64 id, int error)
{
	struct call *call;

	mutex_lock(&calls);
	list_for_each_entry(call, &under_way, link) {
		if (call->request.id != id)
			continue;
		call->error = error;
		complete(&call->done);
		break;
	}
	mutex_unlock(&calls);
}

static void cq_event(const struct softcard_message *message)
{
	struct soft_cq *cq = xa_load(&cqs, message->number);
	struct ib_event event = { .device = &device->ib, .event = message->value };

	if (!cq)
		return;
	if (message->kind == SOFTCARD_COMPLETION_EVENT) {
		if (cq->ib.comp_handler)
			cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
		return;
	}
	event.element.cq = &cq->ib;
	if (cq->ib.event_handler)
		cq->ib.event_handler(&event, cq->ib.cq_context);
}

static void srq_event(const struct softcard_message *message)
{
	struct soft_srq *srq = xa_load(&srqs, message->number);
	struct ib_event event = { .device = &device->ib, .event = message->value };

	if (!srq)
		return;
	if (message->value == IB_EVENT_SRQ_LIMIT_REACHED)
		srq->attr.srq_limit = 0;
	event.element.srq = &srq->ib;
	if (srq->ib.event_handler)
		srq->ib.event_handler(&event, srq->ib.srq_context);
}

static void qp_event(const struct softcard_message *message)
{
	struct soft_qp *qp = xa_load(&qps, message->number);
	struct ib_event event = { .device = &device->ib, .event = message->value };

	if (!qp)
		return;
	if (message->kind == SOFTCARD_QP_STATE) {
		WRITE_ONCE(qp->attr.qp_state, message->value);
		return;
	}
	event.element.qp = &qp->ib;
	if (qp->ib.event_handler)
		qp->ib.event_handler(&event, qp->ib.qp_context);
}

static ssize_t take_mad(const char __user *from, size_t size)
{
	struct softcard_mad *mad;

	if (size != sizeof(*mad))
		return -EINVAL;
	mad = memdup_user(from, size);
	if (IS_ERR(mad))
		return PTR_ERR(mad);
	deliver_mad(mad);
	kfree(mad);
	return 0;
}

static ssize_t card_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	struct ib_event event = { .device = &device->ib };
	struct softcard_message message;

	if (size < sizeof(message))
		return -EINVAL;
	if (copy_from_user(&message, from, sizeof(message)))
		return -EFAULT;
	if (message.kind == SOFTCARD_MAD)
		return take_mad(from + sizeof(message), size - sizeof(message)) ?: size;
	if (size != sizeof(message))
		return -EINVAL;
	switch (message.kind) {
	case SOFTCARD_CONFIGURE:
		if (message.version != SOFTCARD_VERSION)
			return -EPROTO;
		mutex_lock(&calls);
		card_flags = message.value;
		card_ready = true;
		mutex_unlock(&calls);
		return size;
	case SOFTCARD_ANSWER:
		answered(message.id, message.value);
		return size;
	case SOFTCARD_DEVICE_EVENT:
		event.event = message.value;
		event.element.port_num = 1;
		ib_dispatch_event(&event);
		return size;
	}
	mutex_lock(&objects);
	switch (message.kind) {
	case SOFTCARD_COMPLETION_EVENT:
	case SOFTCARD_CQ_EVENT:
		cq_event(&message);
		break;
	case SOFTCARD_SRQ_EVENT:
		srq_event(&message);
		break;
	case SOFTCARD_QP_EVENT:
	case SOFTCARD_QP_STATE:
		qp_event(&message);
		break;
	default:
		size = -EINVAL;
	}
	mutex_unlock(&objects);
	return size;
}

static int card_mmap(struct file *file, struct vm_area_struct *vma)
{
	u64 token = vma->vm_pgoff >> (AREA_SHIFT - PAGE_SHIFT);
	unsigned long at = vma->vm_start;
	struct scatterlist *piece;
	struct sg_table *table;
	struct area *area;
	int error = 0, i;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_pgoff != token << (AREA_SHIFT - PAGE_SHIFT))
		return -EINVAL;
	vma->vm_flags |= VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP;
	if (token == 0)
		return map_page(vma, state_page);
	xa_lock(&areas);
	area = xa_load(&areas, token);
	xa_unlock(&areas);
	/* It stays: its owner waits for the card's answer before it frees it. */
	if (!area)
		return -ENOENT;
	if (area->page)
		return map_page(vma, area->page);
	if (!area->writable) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vma->vm_flags &= ~VM_MAYWRITE;
	}
	table = area->umem->is_dmabuf ? to_ib_umem_dmabuf(area->umem)->sgt : &area->umem->sgt_append.sgt;
	for_each_sgtable_sg(table, piece, i) {
		unsigned long size = min_t(unsigned long, PAGE_ALIGN(piece->length), vma->vm_end - at);

		if (!size)
			break;
		error = remap_pfn_range(vma, at, page_to_pfn(sg_page(piece)), size, vma->vm_page_prot);
		if (error)
			return error;
		at += size;
	}
	return at == vma->vm_end ? 0 : -EINVAL;
}

static const struct file_operations card_operations = {
	.owner = THIS_MODULE,
	.open = card_open,
	.release = card_release,
	.read = card_read,
	.write = card_write,
	.poll = card_poll,
	.mmap = card_mmap,
};

static struct miscdevice card_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "softcard",
	.fops = &card_operations,
	.mode = 0600,
};

void unmap_from_card(u64 offset, u64 length)
{
	mutex_lock(&calls);
	if (card)
		unmap_mapping_range(card->f_mapping, offset, length, 1);
	mutex_unlock(&calls);
}

int start_card(void)
{
	int error;

	state_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!state_page)
		return -ENOMEM;
	error = misc_register(&card_device);
	if (error)
		__free_page(state_page);
	return error;
}

void stop_card(void)
{
	misc_deregister(&card_device);
	__free_page(state_page);
}
