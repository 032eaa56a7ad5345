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
	bool is_done;
	int error;
	/* *place becomes value when the card says that it has done it; may be NULL. */
	u32 *place;
	u32 value;
};

/* Pages that a card which did not answer may still use. */
struct kept {
	struct list_head link;
	struct ib_umem *umem;
};

#define ANSWER_LIMIT (30 * HZ)

static DEFINE_MUTEX(calls);
static struct page *state_page;
static LIST_HEAD(waiting); /* to be read */
static LIST_HEAD(under_way); /* to be answered */
static DECLARE_WAIT_QUEUE_HEAD(readers);
static LIST_HEAD(kept_pages);
static struct file *card;
static bool card_lost; /* It did not answer in time, and has not closed the device file yet. */
u32 card_flags;
bool card_ready;
bool card_failed;
static u64 next_call;

/* The lock is held. */
static void finish(struct call *call, int error)
{
	if (call->is_done)
		return;
	call->is_done = true;
	call->error = error;
	complete(&call->done);
}

/* The lock is held. */
static void fail_calls(void)
{
	struct call *call;

	card_ready = false;
	list_for_each_entry(call, &waiting, link)
		finish(call, -ENODEV);
	list_for_each_entry(call, &under_way, link)
		finish(call, -ENODEV);
}

/* The lock is held. Nothing is asked any more, and the card gets an error when it reads or writes. */
static void lose_card(void)
{
	struct softcard_page *page = page_address(state_page);

	card_lost = true;
	fail_calls();
	WRITE_ONCE(page->requests, page->requests + 1);
}

int ask(u32 kind, u32 number, struct softcard_request *request)
{
	return ask_and_set(kind, number, request, NULL, 0);
}

int ask_and_set(u32 kind, u32 number, struct softcard_request *request, u32 *place, u32 value)
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
	call->place = place;
	call->value = value;

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

	wait_for_completion_timeout(&call->done, ANSWER_LIMIT);
	mutex_lock(&calls);
	list_del(&call->link);
	if (!call->is_done) {
		pr_err("softcard: the card does not answer request %u\n", kind);
		call->error = -ETIMEDOUT;
		lose_card();
	}
	error = call->error;
	mutex_unlock(&calls);
	wake_up(&readers);
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
	struct kept *each, *next;
	LIST_HEAD(unused);

	mutex_lock(&calls);
	fail_calls();
	card = NULL;
	card_lost = false;
	list_splice_init(&kept_pages, &unused);
	mutex_unlock(&calls);
	/* Its mappings are gone: each of them held the file open. */
	list_for_each_entry_safe(each, next, &unused, link) {
		ib_umem_release(each->umem);
		kfree(each);
	}
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
		if (card_lost) {
			mutex_unlock(&calls);
			return -ENODEV;
		}
		call = list_first_entry_or_null(&waiting, struct call, link);
		if (call)
			break;
		mutex_unlock(&calls);
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(readers, !list_empty(&waiting) || READ_ONCE(card_lost)))
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
	return list_empty(&waiting) && !READ_ONCE(card_lost) ? 0 : EPOLLIN | EPOLLRDNORM;
}

static void answered(u64 id, int error)
{
	struct call *call;

	mutex_lock(&calls);
	list_for_each_entry(call, &under_way, link) {
		if (call->request.id != id)
			continue;
		if (!error && call->place) {
			mutex_lock(&objects);
			WRITE_ONCE(*call->place, call->value);
			mutex_unlock(&objects);
		}
		finish(call, error);
		break;
	}
	mutex_unlock(&calls);
}

static void cq_event(const struct softcard_message *message)
{
	struct soft_cq *cq = xa_load(&cqs.objects, message->number);
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
	struct soft_srq *srq = xa_load(&srqs.objects, message->number);
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
	struct soft_qp *qp = xa_load(&qps.objects, message->number);
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
	if (READ_ONCE(card_lost))
		return -ENODEV;
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
		card_failed = false;
		mutex_unlock(&calls);
		return size;
	case SOFTCARD_ANSWER:
		answered(message.id, message.value);
		return size;
	case SOFTCARD_DEVICE_EVENT:
		WRITE_ONCE(card_failed, message.value == IB_EVENT_DEVICE_FATAL);
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

static int map_area(struct vm_area_struct *vma, const struct area *area)
{
	unsigned long at = vma->vm_start;
	struct scatterlist *piece;
	struct sg_table *table;
	u64 skipped = 0;
	int error, i;

	if (area->page)
		return map_page(vma, area->page);
	if (!area->writable) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vma->vm_flags &= ~VM_MAYWRITE;
	}
	table = &area->umem->sgt_append.sgt;
	if (area->umem->is_dmabuf) {
		/* The table is that of the whole dma-buf, in which the address is the offset. */
		table = to_ib_umem_dmabuf(area->umem)->sgt;
		skipped = ALIGN_DOWN(area->umem->address, PAGE_SIZE);
	}
	for_each_sgtable_sg(table, piece, i) {
		u64 length = PAGE_ALIGN(piece->length);
		unsigned long size;

		if (skipped >= length) {
			skipped -= length;
			continue;
		}
		size = min_t(u64, length - skipped, vma->vm_end - at);
		if (!size)
			break;
		error = remap_pfn_range(vma, at, page_to_pfn(sg_page(piece)) + (skipped >> PAGE_SHIFT), size,
					vma->vm_page_prot);
		if (error)
			return error;
		at += size;
		skipped = 0;
	}
	return at == vma->vm_end ? 0 : -EINVAL;
}

static int card_mmap(struct file *file, struct vm_area_struct *vma)
{
	u64 token = vma->vm_pgoff >> (AREA_SHIFT - PAGE_SHIFT);
	struct area *area;
	int error = -ENOENT;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_pgoff != token << (AREA_SHIFT - PAGE_SHIFT))
		return -EINVAL;
	vma->vm_flags |= VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP;
	if (token == 0)
		return map_page(vma, state_page);
	/* With the lock, under which an owner takes its area from the card. */
	mutex_lock(&calls);
	area = card_lost ? NULL : xa_load(&areas, token);
	if (area)
		error = map_area(vma, area);
	mutex_unlock(&calls);
	return error;
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

void take_from_card(struct area *area)
{
	struct ib_umem *umem = area->umem;
	struct kept *kept;

	mutex_lock(&calls);
	xa_erase(&areas, area->token);
	if (card_lost && umem) {
		kept = kmalloc(sizeof(*kept), GFP_KERNEL | __GFP_NOFAIL);
		kept->umem = umem;
		list_add(&kept->link, &kept_pages);
		umem = NULL;
	} else if (card && !card_lost) {
		unmap_mapping_range(card->f_mapping, (u64)area->token << AREA_SHIFT, 1ull << AREA_SHIFT, 1);
	}
	mutex_unlock(&calls);
	area->token = 0;
	area->umem = NULL;
	if (umem)
		ib_umem_release(umem);
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
