// SPDX-License-Identifier: GPL-2.0
/*
 * An RDMA device with the user ABI of mlx5, so that the vendor's libmlx5 drives it. It carries
 * nothing out itself: a process, the card, reads about each object from /dev/softcard, maps the
 * owners' memory and the pages of doorbells, and does what a card does.
 */
#include <linux/completion.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/poll.h>
#include <linux/xarray.h>
#include <net/addrconf.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/uverbs_ioctl.h>
#define UVERBS_MODULE_NAME mlx5_ib
#include <rdma/uverbs_named_ioctl.h>

#include "softcard.h"

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An RDMA device of mlx5's user ABI whose card is a process");
MODULE_IMPORT_NS(DMA_BUF);

static char *netdev = "eth0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "the network device whose addresses the card has");

#define MAX_ENTRIES (1 << 15)
#define MAX_CQE (1 << 22)
#define FIRST_NUMBER 0x40
#define MAX_NUMBER 0x3ffff
/* Areas are this far apart in the device file. */
#define AREA_SHIFT 36
#define ANSWER_LIMIT (30 * HZ)

/* Pages that the card can map. */
struct area {
	u32 token;
	struct ib_umem *umem;
	struct page *page; /* instead of umem */
	bool writable;
};

struct soft_pd {
	struct ib_pd ib;
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
};

struct soft_srq {
	struct ib_srq ib;
	struct area entries, record;
	struct ib_srq_attr attr;
	u32 number;
};

struct soft_qp {
	struct ib_qp ib;
	struct area entries, record;
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
	struct mutex change;
};

struct soft_device {
	struct ib_device ib;
};

struct soft_context {
	struct ib_ucontext ib;
};

static struct soft_device *device;
static struct platform_device *parent;
static struct net_device *network;
static struct page *state_page;
static DEFINE_XARRAY_ALLOC1(areas);
static DEFINE_XARRAY_ALLOC1(uars);
static DEFINE_XARRAY_ALLOC1(keys);
static DEFINE_XARRAY_ALLOC1(cqs);
static DEFINE_XARRAY_ALLOC1(srqs);
static DEFINE_XARRAY_ALLOC1(qps);
static u32 next_area, next_uar, next_key, next_cq, next_srq, next_qp;
static atomic_t next_pd = ATOMIC_INIT(0);
/* Held while an event goes to an object, and while the object disappears. */
static DEFINE_MUTEX(objects);

/* ---- the card ---- */

struct call {
	struct list_head link;
	struct softcard_request request;
	struct completion done;
	int error;
};

static DEFINE_MUTEX(calls);
static LIST_HEAD(waiting); /* to be read */
static LIST_HEAD(under_way); /* to be answered */
static DECLARE_WAIT_QUEUE_HEAD(readers);
static struct file *card;
static u32 card_flags;
static bool card_ready;
static u64 next_call;

static int ask(u32 kind, u32 number, struct softcard_request *request)
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

static ssize_t card_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	struct ib_event event = { .device = &device->ib };
	struct softcard_message message;

	if (size != sizeof(message))
		return -EINVAL;
	if (copy_from_user(&message, from, sizeof(message)))
		return -EFAULT;
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

static int map_page(struct vm_area_struct *vma, struct page *page)
{
	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	return vm_insert_page(vma, vma->vm_start, page);
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

/* ---- pages of owners ---- */

static int name_area(struct area *area)
{
	return xa_alloc_cyclic(&areas, &area->token, area, XA_LIMIT(1, (1 << 20) - 1), &next_area,
			       GFP_KERNEL) < 0 ? -ENOMEM : 0;
}

/* The card has answered that it is done with it. Mappings that it keeps nevertheless are removed. */
static void free_area(struct area *area)
{
	if (!area->token)
		return;
	xa_erase(&areas, area->token);
	mutex_lock(&calls);
	if (card)
		unmap_mapping_range(card->f_mapping, (loff_t)area->token << AREA_SHIFT,
				    1ull << AREA_SHIFT, 1);
	mutex_unlock(&calls);
	area->token = 0;
	if (area->umem)
		ib_umem_release(area->umem);
	area->umem = NULL;
}

static int take_umem(struct area *area, struct ib_umem *umem, int access)
{
	int error;

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	area->umem = umem;
	area->writable = ib_access_writable(access);
	error = name_area(area);
	if (error)
		ib_umem_release(umem);
	return error;
}

static int pin(struct area *area, u64 address, u64 length, int access)
{
	return take_umem(area, ib_umem_get(&device->ib, address, length, access), access);
}

static void describe(const struct area *area, struct softcard_area *to)
{
	to->map_offset = (u64)area->token << AREA_SHIFT;
	if (area->page) {
		to->map_length = to->length = PAGE_SIZE;
		return;
	}
	to->begin = ib_umem_offset(area->umem);
	to->length = area->umem->length;
	to->map_length = PAGE_ALIGN(to->begin + to->length);
}

static int pin_ring(struct area *entries, u64 address, u64 length, struct area *record, u64 record_at)
{
	int error;

	if (record_at & 7)
		return -EINVAL;
	error = pin(entries, address, length, IB_ACCESS_LOCAL_WRITE);
	if (error)
		return error;
	error = pin(record, record_at, 8, IB_ACCESS_LOCAL_WRITE);
	if (error)
		free_area(entries);
	return error;
}

/* ---- the device and its port ---- */

static int query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = 16ull << 32 | 28 << 16 | 1;
	attr->sys_image_guid = ib->node_guid;
	attr->max_mr_size = 1ull << (AREA_SHIFT - 1);
	attr->page_size_cap = PAGE_SIZE;
	attr->vendor_id = 0x2c9;
	attr->vendor_part_id = 4129;
	attr->max_qp = 4096;
	attr->max_qp_wr = MAX_ENTRIES;
	attr->device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_SRQ_RESIZE | IB_DEVICE_PORT_ACTIVE_EVENT;
	attr->max_send_sge = 30;
	attr->max_recv_sge = 32;
	attr->max_sge_rd = 30;
	attr->max_cq = 4096;
	attr->max_cqe = MAX_CQE - 1;
	attr->max_mr = 1 << 16;
	attr->max_pd = 4096;
	attr->max_qp_rd_atom = 16;
	attr->max_res_rd_atom = 16 * 4096;
	attr->max_qp_init_rd_atom = 16;
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->max_srq = 4096;
	attr->max_srq_wr = MAX_ENTRIES - 1;
	attr->max_srq_sge = 31;
	attr->max_pkeys = 1;
	attr->max_ah = 4096;
	attr->local_ca_ack_delay = 16;
	if (udata && udata->outlen) {
		struct mlx5_ib_query_device_resp answer = {};
		size_t size = min(udata->outlen, sizeof(answer));

		answer.response_length = size;
		return ib_copy_to_udata(udata, &answer, size);
	}
	return 0;
}

static int query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	bool up = netif_running(network) && netif_carrier_ok(network);

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = 64;
	attr->pkey_tbl_len = 1;
	attr->ip_gids = true;
	attr->active_speed = IB_SPEED_EDR;
	attr->active_width = IB_WIDTH_4X;
	attr->max_msg_sz = 1u << 30;
	attr->max_vl_num = 1;
	return 0;
}

static int port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	immutable->pkey_tbl_len = 1;
	immutable->gid_tbl_len = 64;
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP | RDMA_CORE_CAP_ETH_AH;
	return 0;
}

static enum rdma_link_layer link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = 0xffff;
	return 0;
}

static int add_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int del_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static void firmware(struct ib_device *ib, char *text)
{
	strscpy(text, "16.28.1", IB_FW_VERSION_NAME_MAX);
}

/* ---- contexts, pages of doorbells, protection domains ---- */

static int alloc_context(struct ib_ucontext *context, struct ib_udata *udata)
{
	struct mlx5_ib_alloc_ucontext_req_v2 wanted = {};
	struct mlx5_ib_alloc_ucontext_resp answer = {};
	int error = ib_copy_from_udata(&wanted, udata, min(sizeof(wanted), udata->inlen));

	if (error)
		return error;
	/* Older libraries map registers by number. */
	if (!(wanted.lib_caps & MLX5_LIB_CAP_DYN_UAR))
		return -EOPNOTSUPP;
	if (wanted.flags)
		return -EOPNOTSUPP; /* devx */
	if (!card_ready)
		return -EIO;
	answer.qp_tab_size = MAX_NUMBER + 1;
	if (!(card_flags & SOFTCARD_NO_WRITE_COMBINING))
		answer.bf_reg_size = 512;
	answer.cache_line_size = 64;
	answer.max_sq_desc_sz = 1024;
	answer.max_rq_desc_sz = 512;
	answer.max_send_wqebb = MAX_ENTRIES;
	answer.max_recv_wr = MAX_ENTRIES;
	answer.max_srq_recv_wr = MAX_ENTRIES;
	answer.num_ports = 1;
	answer.log_uar_size = PAGE_SHIFT;
	answer.num_uars_per_page = 1;
	answer.eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
	answer.response_length = min(udata->outlen, sizeof(answer));
	return ib_copy_to_udata(udata, &answer, answer.response_length);
}

static void dealloc_context(struct ib_ucontext *context)
{
}

static void free_uar(struct rdma_user_mmap_entry *entry)
{
	struct soft_uar *uar = container_of(entry, struct soft_uar, entry);

	if (uar->told)
		ask(SOFTCARD_FREE_UAR, uar->number, NULL);
	if (uar->number)
		xa_erase(&uars, uar->number);
	free_area(&uar->area);
	__free_page(uar->area.page);
	kfree(uar);
}

static int map_uar(struct ib_ucontext *context, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	int error;

	if (card_flags & SOFTCARD_NO_REGISTERS)
		return -EPERM;
	entry = rdma_user_mmap_entry_get(context, vma);
	if (!entry)
		return -EINVAL;
	error = map_page(vma, container_of(entry, struct soft_uar, entry)->area.page);
	rdma_user_mmap_entry_put(entry);
	return error;
}

static int uar_cleanup(struct ib_uobject *object, enum rdma_remove_reason why,
		       struct uverbs_attr_bundle *attrs)
{
	struct soft_uar *uar = object->object;

	rdma_user_mmap_entry_remove(&uar->entry);
	return 0;
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_UAR_OBJ_ALLOC)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *object = uverbs_attr_get_uobject(attrs, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE);
	struct ib_ucontext *context = ib_uverbs_get_ucontext(attrs);
	struct softcard_request request = {};
	enum mlx5_ib_uapi_uar_alloc_type type;
	struct soft_uar *uar;
	u64 offset;
	u32 length = PAGE_SIZE;
	int error;

	if (IS_ERR(context))
		return PTR_ERR(context);
	error = uverbs_get_const(&type, attrs, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE);
	if (error)
		return error;
	if (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)
		return -EOPNOTSUPP;
	if (type == MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && card_flags & SOFTCARD_NO_WRITE_COMBINING)
		return -EOPNOTSUPP;
	uar = kzalloc(sizeof(*uar), GFP_KERNEL);
	if (!uar)
		return -ENOMEM;
	uar->owner = context;
	uar->area.page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!uar->area.page) {
		kfree(uar);
		return -ENOMEM;
	}
	uar->area.writable = true;
	error = rdma_user_mmap_entry_insert(context, &uar->entry, PAGE_SIZE);
	if (error) {
		__free_page(uar->area.page);
		kfree(uar);
		return error;
	}
	error = name_area(&uar->area);
	if (!error && xa_alloc_cyclic(&uars, &uar->number, uar, XA_LIMIT(1, MAX_NUMBER), &next_uar,
				      GFP_KERNEL) < 0)
		error = -ENOMEM;
	if (!error) {
		describe(&uar->area, &request.uar);
		error = ask(SOFTCARD_NEW_UAR, uar->number, &request);
		uar->told = !error;
	}
	if (error) {
		rdma_user_mmap_entry_remove(&uar->entry);
		return error;
	}
	object->object = uar;
	uverbs_finalize_uobj_create(attrs, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE);
	offset = rdma_user_mmap_get_offset(&uar->entry);
	error = uverbs_copy_to(attrs, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset, sizeof(offset));
	if (!error)
		error = uverbs_copy_to(attrs, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &uar->number,
				       sizeof(uar->number));
	if (!error)
		error = uverbs_copy_to(attrs, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length,
				       sizeof(length));
	return error;
}

DECLARE_UVERBS_NAMED_METHOD(
	MLX5_IB_METHOD_UAR_OBJ_ALLOC,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, MLX5_IB_OBJECT_UAR, UVERBS_ACCESS_NEW,
			UA_MANDATORY),
	UVERBS_ATTR_CONST_IN(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, enum mlx5_ib_uapi_uar_alloc_type,
			     UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, UVERBS_ATTR_TYPE(u64), UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(
	MLX5_IB_METHOD_UAR_OBJ_DESTROY,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, MLX5_IB_OBJECT_UAR, UVERBS_ACCESS_DESTROY,
			UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(MLX5_IB_OBJECT_UAR, UVERBS_TYPE_ALLOC_IDR(uar_cleanup),
			    &UVERBS_METHOD(MLX5_IB_METHOD_UAR_OBJ_ALLOC),
			    &UVERBS_METHOD(MLX5_IB_METHOD_UAR_OBJ_DESTROY));

static const struct uapi_definition definitions[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(MLX5_IB_OBJECT_UAR),
	{},
};

/* Returns whether a page of doorbells with this number is one of this owner. */
static bool owns_uar(struct ib_udata *udata, u32 number)
{
	struct ib_ucontext *context = rdma_udata_to_drv_context(udata, struct soft_context, ib)
		? &rdma_udata_to_drv_context(udata, struct soft_context, ib)->ib : NULL;
	struct soft_uar *uar;
	bool owns;

	xa_lock(&uars);
	uar = xa_load(&uars, number);
	owns = uar && uar->owner == context;
	xa_unlock(&uars);
	return owns;
}

static int alloc_domain(struct ib_pd *ib, struct ib_udata *udata)
{
	struct soft_pd *pd = container_of(ib, struct soft_pd, ib);
	struct mlx5_ib_alloc_pd_resp answer = {};

	pd->number = atomic_inc_return(&next_pd);
	answer.pdn = pd->number;
	return udata ? ib_copy_to_udata(udata, &answer, min(sizeof(answer), udata->outlen)) : 0;
}

static int dealloc_domain(struct ib_pd *ib, struct ib_udata *udata)
{
	return 0;
}

static u32 number_of(struct ib_pd *ib)
{
	return container_of(ib, struct soft_pd, ib)->number;
}

/* ---- memory ---- */

static struct ib_mr *make_mr(struct soft_mr *mr, struct ib_pd *pd, u64 length, u64 iova, int access)
{
	struct softcard_request request = {};
	int error;

	/* Bits 0 to 7 of a key are its owner's to choose, on a card; here they are 0. */
	if (xa_alloc_cyclic(&keys, &mr->index, mr, XA_LIMIT(0x10, 0xfffff), &next_key, GFP_KERNEL) < 0) {
		error = -ENOMEM;
		goto fail;
	}
	mr->ib.lkey = mr->ib.rkey = mr->index << 8;
	mr->ib.length = length;
	mr->ib.iova = iova;
	describe(&mr->area, &request.mr.area);
	request.mr.iova = iova;
	request.mr.access = access;
	request.mr.pd = number_of(pd);
	error = ask(SOFTCARD_NEW_MR, mr->ib.lkey, &request);
	if (!error)
		return &mr->ib;
	xa_erase(&keys, mr->index);
fail:
	free_area(&mr->area);
	kfree(mr);
	return ERR_PTR(error);
}

static struct ib_mr *reg_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
			    struct ib_udata *udata)
{
	struct soft_mr *mr;
	int error;

	if (access & (IB_ACCESS_ON_DEMAND | IB_ZERO_BASED | IB_ACCESS_MW_BIND))
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	error = pin(&mr->area, start, length, access);
	if (error) {
		kfree(mr);
		return ERR_PTR(error);
	}
	return make_mr(mr, pd, length, iova, access);
}

static struct ib_mr *reg_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 iova, int fd, int access,
				struct ib_udata *udata)
{
	struct ib_umem_dmabuf *umem;
	struct soft_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	int error;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	umem = ib_umem_dmabuf_get_pinned(&device->ib, offset, length, fd, access);
	error = IS_ERR(umem) ? PTR_ERR(umem) : take_umem(&mr->area, &umem->umem, access);
	if (error) {
		kfree(mr);
		return ERR_PTR(error);
	}
	return make_mr(mr, pd, length, iova, access);
}

static int dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct soft_mr *mr = container_of(ib, struct soft_mr, ib);

	ask(SOFTCARD_FREE_MR, mr->ib.lkey, NULL);
	xa_erase(&keys, mr->index);
	free_area(&mr->area);
	kfree(mr);
	return 0;
}

static struct ib_mr *dma_mr(struct ib_pd *pd, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

/* ---- completion queues ---- */

static int create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
{
	struct soft_cq *cq = container_of(ib, struct soft_cq, ib);
	struct softcard_request request = {};
	struct mlx5_ib_create_cq_resp answer = {};
	struct mlx5_ib_create_cq wanted = {};
	int error;

	if (!udata)
		return -EOPNOTSUPP;
	error = ib_copy_from_udata(&wanted, udata, min(sizeof(wanted), udata->inlen));
	if (error)
		return error;
	if (attr->cqe >= MAX_CQE || attr->flags & ~(IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN |
						   IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION))
		return -EINVAL;
	if (wanted.cqe_size != 64 || wanted.cqe_comp_en)
		return -EOPNOTSUPP;
	if (!(wanted.flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX) || !owns_uar(udata, wanted.uar_page_index))
		return -EINVAL;
	request.cq.count = roundup_pow_of_two(attr->cqe + 1);
	request.cq.uar = wanted.uar_page_index;
	request.cq.ignores_overrun = !!(attr->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN);
	error = pin_ring(&cq->entries, wanted.buf_addr, (u64)request.cq.count * 64, &cq->record,
			 wanted.db_addr);
	if (error)
		return error;
	if (xa_alloc_cyclic(&cqs, &cq->number, cq, XA_LIMIT(FIRST_NUMBER, MAX_NUMBER), &next_cq, GFP_KERNEL) < 0) {
		error = -ENOMEM;
		goto no_number;
	}
	describe(&cq->entries, &request.cq.entries);
	describe(&cq->record, &request.cq.record);
	error = ask(SOFTCARD_NEW_CQ, cq->number, &request);
	if (error)
		goto refused;
	ib->cqe = request.cq.count - 1;
	answer.cqn = cq->number;
	error = ib_copy_to_udata(udata, &answer, min(sizeof(answer), udata->outlen));
	if (!error)
		return 0;
	ask(SOFTCARD_FREE_CQ, cq->number, NULL);
refused:
	xa_erase(&cqs, cq->number);
no_number:
	free_area(&cq->record);
	free_area(&cq->entries);
	return error;
}

static void forget(struct xarray *from, u32 number)
{
	mutex_lock(&objects);
	xa_erase(from, number);
	mutex_unlock(&objects);
}

static int destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	struct soft_cq *cq = container_of(ib, struct soft_cq, ib);

	ask(SOFTCARD_FREE_CQ, cq->number, NULL);
	forget(&cqs, cq->number);
	free_area(&cq->record);
	free_area(&cq->entries);
	return 0;
}

/* ---- shared receive queues ---- */

static int create_srq(struct ib_srq *ib, struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	struct soft_srq *srq = container_of(ib, struct soft_srq, ib);
	struct softcard_request request = {};
	struct mlx5_ib_create_srq_resp answer = {};
	struct mlx5_ib_create_srq wanted = {};
	u32 bytes;
	int error;

	if (!udata || attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	error = ib_copy_from_udata(&wanted, udata, min(sizeof(wanted), udata->inlen));
	if (error)
		return error;
	if (attr->attr.max_wr >= MAX_ENTRIES || attr->attr.max_sge > 31 || wanted.flags)
		return -EINVAL;
	/* libmlx5 and mlx5_ib calculate it in the same way. */
	bytes = roundup_pow_of_two(max_t(u32, 32, 16 + attr->attr.max_sge * 16));
	request.srq.count = roundup_pow_of_two(attr->attr.max_wr + 1);
	request.srq.shift = ilog2(bytes);
	request.srq.pd = number_of(ib->pd);
	error = pin_ring(&srq->entries, wanted.buf_addr, (u64)request.srq.count * bytes, &srq->record,
			 wanted.db_addr);
	if (error)
		return error;
	if (xa_alloc_cyclic(&srqs, &srq->number, srq, XA_LIMIT(FIRST_NUMBER, MAX_NUMBER), &next_srq,
			    GFP_KERNEL) < 0) {
		error = -ENOMEM;
		goto no_number;
	}
	describe(&srq->entries, &request.srq.entries);
	describe(&srq->record, &request.srq.record);
	error = ask(SOFTCARD_NEW_SRQ, srq->number, &request);
	if (error)
		goto refused;
	srq->attr = attr->attr;
	srq->attr.srq_limit = 0;
	answer.srqn = srq->number;
	error = ib_copy_to_udata(udata, &answer, min(sizeof(answer), udata->outlen));
	if (!error)
		return 0;
	ask(SOFTCARD_FREE_SRQ, srq->number, NULL);
refused:
	xa_erase(&srqs, srq->number);
no_number:
	free_area(&srq->record);
	free_area(&srq->entries);
	return error;
}

static int modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		      struct ib_udata *udata)
{
	struct soft_srq *srq = container_of(ib, struct soft_srq, ib);
	struct softcard_request request = {};
	int error;

	if (mask & IB_SRQ_MAX_WR)
		return -EINVAL;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit >= srq->attr.max_wr)
		return -EINVAL;
	request.srq.limit = attr->srq_limit;
	/* Before the card can report that it is reached. */
	mutex_lock(&objects);
	srq->attr.srq_limit = attr->srq_limit;
	mutex_unlock(&objects);
	error = ask(SOFTCARD_MODIFY_SRQ, srq->number, &request);
	return error;
}

static int query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	*attr = container_of(ib, struct soft_srq, ib)->attr;
	return 0;
}

static int destroy_srq(struct ib_srq *ib, struct ib_udata *udata)
{
	struct soft_srq *srq = container_of(ib, struct soft_srq, ib);

	ask(SOFTCARD_FREE_SRQ, srq->number, NULL);
	forget(&srqs, srq->number);
	free_area(&srq->record);
	free_area(&srq->entries);
	return 0;
}

/* ---- queue pairs ---- */

static int check_sizes(const struct mlx5_ib_create_qp *wanted, bool has_receives)
{
	if (wanted->sq_wqe_count > MAX_ENTRIES || wanted->rq_wqe_count > MAX_ENTRIES)
		return -EINVAL;
	if (wanted->sq_wqe_count && !is_power_of_2(wanted->sq_wqe_count))
		return -EINVAL;
	if (!has_receives)
		return 0;
	if (!is_power_of_2(wanted->rq_wqe_count) || wanted->rq_wqe_shift < 4 || wanted->rq_wqe_shift > 9)
		return -EINVAL;
	return 0;
}

static int create_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct soft_qp *qp = container_of(ib, struct soft_qp, ib);
	struct softcard_request request = {};
	struct mlx5_ib_create_qp_resp answer = {};
	struct mlx5_ib_create_qp wanted = {};
	bool has_receives;
	u64 bytes;
	u32 number;
	int error;

	if (!udata || (attr->qp_type != IB_QPT_RC && attr->qp_type != IB_QPT_UC) || attr->create_flags)
		return -EOPNOTSUPP;
	error = ib_copy_from_udata(&wanted, udata, min(sizeof(wanted), udata->inlen));
	if (error)
		return error;
	has_receives = !attr->srq && attr->cap.max_recv_wr;
	error = check_sizes(&wanted, has_receives);
	if (error)
		return error;
	/* Short data in a completion is a card's choice, which this one does not make. */
	if (wanted.flags & ~(MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE |
			     MLX5_QP_FLAG_UAR_PAGE_INDEX))
		return -EOPNOTSUPP;
	if (!(wanted.flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) || !owns_uar(udata, wanted.bfreg_index))
		return -EINVAL;
	if (has_receives) {
		request.qp.receives = wanted.rq_wqe_count;
		request.qp.receive_shift = wanted.rq_wqe_shift;
	}
	request.qp.send_blocks = wanted.sq_wqe_count;
	bytes = ((u64)request.qp.receives << request.qp.receive_shift) + ((u64)wanted.sq_wqe_count << 6);
	error = pin_ring(&qp->entries, wanted.buf_addr, max_t(u64, bytes, 64), &qp->record, wanted.db_addr);
	if (error)
		return error;
	if (xa_alloc_cyclic(&qps, &number, qp, XA_LIMIT(FIRST_NUMBER, MAX_NUMBER), &next_qp, GFP_KERNEL) < 0) {
		error = -ENOMEM;
		goto no_number;
	}
	ib->qp_num = number;
	mutex_init(&qp->change);
	qp->init = *attr;
	qp->attr.qp_state = IB_QPS_RESET;
	describe(&qp->entries, &request.qp.entries);
	describe(&qp->record, &request.qp.record);
	request.qp.send_cq = container_of(attr->send_cq, struct soft_cq, ib)->number;
	request.qp.receive_cq = container_of(attr->recv_cq, struct soft_cq, ib)->number;
	request.qp.srq = attr->srq ? container_of(attr->srq, struct soft_srq, ib)->number : 0;
	request.qp.uar = wanted.bfreg_index;
	request.qp.pd = number_of(ib->pd);
	request.qp.is_unreliable = attr->qp_type == IB_QPT_UC;
	error = ask(SOFTCARD_NEW_QP, number, &request);
	if (error)
		goto refused;
	error = ib_copy_to_udata(udata, &answer, min(sizeof(answer), udata->outlen));
	if (!error)
		return 0;
	ask(SOFTCARD_FREE_QP, number, NULL);
refused:
	xa_erase(&qps, number);
no_number:
	free_area(&qp->record);
	free_area(&qp->entries);
	return error;
}

static void state_of(const struct ib_qp_attr *attr, int mask, struct softcard_state *state)
{
	if (mask & IB_QP_STATE) {
		state->mask |= SOFTCARD_STATE;
		state->state = attr->qp_state;
	}
	if (mask & IB_QP_ACCESS_FLAGS) {
		state->mask |= SOFTCARD_ACCESS;
		state->access = attr->qp_access_flags;
	}
	if (mask & IB_QP_AV) {
		const struct ib_global_route *route = rdma_ah_read_grh(&attr->ah_attr);

		state->mask |= SOFTCARD_PATH_CHANGE;
		memcpy(state->peer_gid, route->dgid.raw, 16);
		if (route->sgid_attr)
			memcpy(state->own_gid, route->sgid_attr->gid.raw, 16);
	}
	if (mask & IB_QP_DEST_QPN) {
		state->mask |= SOFTCARD_PEER;
		state->peer = attr->dest_qp_num;
	}
	if (mask & IB_QP_SQ_PSN) {
		state->mask |= SOFTCARD_SEND_PSN;
		state->send_psn = attr->sq_psn & 0xffffff;
	}
	if (mask & IB_QP_RQ_PSN) {
		state->mask |= SOFTCARD_RECEIVE_PSN;
		state->receive_psn = attr->rq_psn & 0xffffff;
	}
	if (mask & IB_QP_RETRY_CNT) {
		state->mask |= SOFTCARD_RETRIES;
		state->retries = attr->retry_cnt;
	}
	if (mask & IB_QP_RNR_RETRY) {
		state->mask |= SOFTCARD_RNR_RETRIES;
		state->rnr_retries = attr->rnr_retry;
	}
	if (mask & IB_QP_TIMEOUT) {
		state->mask |= SOFTCARD_TIMEOUT;
		state->timeout = attr->timeout;
	}
	if (mask & IB_QP_MIN_RNR_TIMER) {
		state->mask |= SOFTCARD_RNR_TIMER;
		state->rnr_timer = attr->min_rnr_timer;
	}
}

/* Keeps what a query will return. */
static void keep(struct ib_qp_attr *to, const struct ib_qp_attr *from, int mask)
{
#define KEEP(flag, field)			\
	do {					\
		if (mask & (flag))		\
			to->field = from->field;\
	} while (0)
	KEEP(IB_QP_PKEY_INDEX, pkey_index);
	KEEP(IB_QP_PORT, port_num);
	KEEP(IB_QP_ACCESS_FLAGS, qp_access_flags);
	KEEP(IB_QP_PATH_MTU, path_mtu);
	KEEP(IB_QP_TIMEOUT, timeout);
	KEEP(IB_QP_RETRY_CNT, retry_cnt);
	KEEP(IB_QP_RNR_RETRY, rnr_retry);
	KEEP(IB_QP_RQ_PSN, rq_psn);
	KEEP(IB_QP_SQ_PSN, sq_psn);
	KEEP(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	KEEP(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	KEEP(IB_QP_MIN_RNR_TIMER, min_rnr_timer);
	KEEP(IB_QP_DEST_QPN, dest_qp_num);
	KEEP(IB_QP_PATH_MIG_STATE, path_mig_state);
	if (mask & IB_QP_AV) {
		to->ah_attr = from->ah_attr;
		to->ah_attr.grh.sgid_attr = NULL;
	}
#undef KEEP
}

static int modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct soft_qp *qp = container_of(ib, struct soft_qp, ib);
	struct softcard_request request = {};
	enum ib_qp_state now, next;
	int error = -EINVAL;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	mutex_lock(&qp->change);
	now = READ_ONCE(qp->attr.qp_state);
	if (mask & IB_QP_CUR_STATE && attr->cur_qp_state != now)
		goto out;
	next = mask & IB_QP_STATE ? attr->qp_state : now;
	if (!ib_modify_qp_is_ok(now, next, ib->qp_type, mask))
		goto out;
	if (mask & IB_QP_PORT && attr->port_num != 1)
		goto out;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index != 0)
		goto out;
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > 16) ||
	    (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > 16))
		goto out;
	if (mask & (IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE)) {
		error = -EOPNOTSUPP;
		goto out;
	}
	state_of(attr, mask, &request.state);
	error = ask(SOFTCARD_MODIFY_QP, ib->qp_num, &request);
	if (error)
		goto out;
	mutex_lock(&objects);
	keep(&qp->attr, attr, mask);
	if (mask & IB_QP_STATE)
		qp->attr.qp_state = next;
	mutex_unlock(&objects);
out:
	mutex_unlock(&qp->change);
	return error;
}

static int query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct soft_qp *qp = container_of(ib, struct soft_qp, ib);

	mutex_lock(&objects);
	*attr = qp->attr;
	mutex_unlock(&objects);
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->init.cap;
	*init = qp->init;
	return 0;
}

static int destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct soft_qp *qp = container_of(ib, struct soft_qp, ib);

	ask(SOFTCARD_FREE_QP, ib->qp_num, NULL);
	forget(&qps, ib->qp_num);
	free_area(&qp->record);
	free_area(&qp->entries);
	return 0;
}

/* ---- what only kernel clients use ---- */

static int post_send(struct ib_qp *qp, const struct ib_send_wr *first, const struct ib_send_wr **bad)
{
	return -EOPNOTSUPP;
}

static int post_recv(struct ib_qp *qp, const struct ib_recv_wr *first, const struct ib_recv_wr **bad)
{
	return -EOPNOTSUPP;
}

static int poll_cq(struct ib_cq *cq, int count, struct ib_wc *wc)
{
	return -EOPNOTSUPP;
}

static int arm_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return -EOPNOTSUPP;
}

static const struct ib_device_ops operations = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_MLX5,
	.uverbs_abi_ver = MLX5_IB_UVERBS_ABI_VERSION,

	.add_gid = add_gid,
	.alloc_pd = alloc_domain,
	.alloc_ucontext = alloc_context,
	.create_cq = create_cq,
	.create_qp = create_qp,
	.create_srq = create_srq,
	.dealloc_pd = dealloc_domain,
	.dealloc_ucontext = dealloc_context,
	.del_gid = del_gid,
	.dereg_mr = dereg_mr,
	.destroy_cq = destroy_cq,
	.destroy_qp = destroy_qp,
	.destroy_srq = destroy_srq,
	.get_dev_fw_str = firmware,
	.get_dma_mr = dma_mr,
	.get_link_layer = link_layer,
	.get_port_immutable = port_immutable,
	.mmap = map_uar,
	.mmap_free = free_uar,
	.modify_qp = modify_qp,
	.modify_srq = modify_srq,
	.poll_cq = poll_cq,
	.post_recv = post_recv,
	.post_send = post_send,
	.query_device = query_device,
	.query_pkey = query_pkey,
	.query_port = query_port,
	.query_qp = query_qp,
	.query_srq = query_srq,
	.reg_user_mr = reg_mr,
	.reg_user_mr_dmabuf = reg_dmabuf,
	.req_notify_cq = arm_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, soft_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, soft_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, soft_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, soft_srq, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, soft_context, ib),
};

static int make_device(void)
{
	int error;

	network = dev_get_by_name(&init_net, netdev);
	if (!network)
		return -ENODEV;
	device = ib_alloc_device(soft_device, ib);
	if (!device) {
		dev_put(network);
		return -ENOMEM;
	}
	device->ib.node_type = RDMA_NODE_IB_CA;
	device->ib.phys_port_cnt = 1;
	device->ib.num_comp_vectors = 1;
	device->ib.driver_def = definitions;
	addrconf_addr_eui48((u8 *)&device->ib.node_guid, network->dev_addr);
	strscpy(device->ib.node_desc, "softcard", sizeof(device->ib.node_desc));
	ib_set_device_ops(&device->ib, &operations);
	error = ib_device_set_netdev(&device->ib, network, 1);
	if (!error)
		error = ib_register_device(&device->ib, "mlx5_%d", &parent->dev);
	if (error) {
		ib_dealloc_device(&device->ib);
		dev_put(network);
	}
	return error;
}

static int __init start(void)
{
	int error = -ENOMEM;

	state_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!state_page)
		return error;
	parent = platform_device_register_simple("softcard", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(parent)) {
		error = PTR_ERR(parent);
		goto no_parent;
	}
	error = dma_coerce_mask_and_coherent(&parent->dev, DMA_BIT_MASK(64));
	if (!error)
		error = make_device();
	if (error)
		goto no_device;
	error = misc_register(&card_device);
	if (!error)
		return 0;
	ib_unregister_device(&device->ib);
	ib_dealloc_device(&device->ib);
	dev_put(network);
no_device:
	platform_device_unregister(parent);
no_parent:
	__free_page(state_page);
	return error;
}

static void __exit stop(void)
{
	misc_deregister(&card_device);
	ib_unregister_device(&device->ib);
	ib_dealloc_device(&device->ib);
	dev_put(network);
	platform_device_unregister(parent);
	__free_page(state_page);
}

module_init(start);
module_exit(stop);
