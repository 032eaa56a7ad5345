// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues, shared receives (RMP) and queue pairs that owners make with the card's own
 * commands. To the card they are the same objects as those of verbs.
 */
#include <linux/etherdevice.h>
#include <linux/log2.h>
#include <linux/mlx5/device.h>
#include <rdma/ib_cache.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#define UVERBS_MODULE_NAME mlx5_ib
#include <rdma/uverbs_named_ioctl.h>

#include "devx.h"

/* First bits of fields that the header of this kernel has no names for. */
#define CQC_DBR_UMEM_ID 0x20
#define CREATE_CQ_UMEM_OFFSET 0x280
#define CREATE_CQ_UMEM_ID 0x2c0
#define CREATE_QP_UMEM_OFFSET 0x800
#define CREATE_QP_UMEM_ID 0x840
#define QPC_SEND_DBR_MODE 0x80 /* 2 bits */
#define QPC_DBR_UMEM_ID 0x720
#define WQ_DBR_UMEM_ID 0x140
#define WQ_UMEM_ID 0x160
#define WQ_UMEM_OFFSET 0x180

#define QP_ST_RC 0
#define RMP_READY 1
#define RQ_OWN 0
#define RQ_SHARED 1
#define RQ_NONE 3

/* A queue, or a queue pair. Events look for the part of its kind, whose verbs object is empty. */
struct soft_object {
	union {
		struct soft_cq cq;
		struct soft_srq srq;
		struct soft_qp qp;
	};
	struct ib_ucontext *owner;
	u16 made_by; /* the command; 0: others cannot use it yet, or no longer */
	u32 number;
	u32 users;
	struct soft_umem *memory[2];
	struct soft_object *used[3];
};

static u32 word_at(const void *structure, u32 bit)
{
	return be32_to_cpu(((const __be32 *)structure)[bit / 32]);
}

static u64 long_at(const void *structure, u32 bit)
{
	return (u64)word_at(structure, bit) << 32 | word_at(structure, bit + 32);
}

/* Lets an object use a part of its owner's memory, as entries (0) or record (1). */
static int use_memory(struct soft_object *object, int place, u32 number, u64 offset, u64 length,
		      struct softcard_area *to)
{
	/* Rings begin at a page of the card's, records at a word of 8 bytes. */
	const u64 alignment = place ? 8 : 4096;
	struct soft_umem *umem;
	int error = -EINVAL;
	u64 size;

	mutex_lock(&objects);
	umem = xa_load(&umems, number);
	size = umem && umem->owner == object->owner ? umem->area.umem->length : 0;
	if (length <= size && offset <= size - length && !(offset & (alignment - 1))) {
		++umem->users;
		object->memory[place] = umem;
		describe(&umem->area, to);
		to->begin += offset;
		to->length = length;
		error = 0;
	}
	mutex_unlock(&objects);
	return error;
}

/* Lets an object use another one, which was made in the same way. Returns its number, or 0. */
static u32 use(struct soft_object *object, int place, struct soft_object *other)
{
	if (!other || other->owner != object->owner || !other->made_by)
		return 0;
	++other->users;
	object->used[place] = other;
	return other->number;
}

static u32 use_cq(struct soft_object *object, int place, u32 number)
{
	struct soft_cq *cq;
	u32 found;

	mutex_lock(&objects);
	cq = xa_load(&cqs.objects, number);
	found = use(object, place, cq ? cq->devx : NULL);
	mutex_unlock(&objects);
	return found;
}

static u32 use_srq(struct soft_object *object, int place, u32 number)
{
	struct soft_srq *srq;
	u32 found;

	mutex_lock(&objects);
	srq = xa_load(&srqs.objects, number);
	found = use(object, place, srq ? srq->devx : NULL);
	mutex_unlock(&objects);
	return found;
}

static void give_back(struct soft_object *object)
{
	int i;

	mutex_lock(&objects);
	for (i = 0; i < ARRAY_SIZE(object->memory); ++i)
		if (object->memory[i])
			--object->memory[i]->users;
	for (i = 0; i < ARRAY_SIZE(object->used); ++i)
		if (object->used[i])
			--object->used[i]->users;
	mutex_unlock(&objects);
}

/* Numbers an object and has the card make it. */
static int make(struct soft_object *object, struct soft_kind *of, void *part, u32 kind, u16 made_by,
		struct softcard_request *request)
{
	int error = give_number(of, part, &object->number);

	if (error)
		return error;
	error = ask(kind, object->number, request);
	if (error) {
		forget(of, object->number);
		return error;
	}
	mutex_lock(&objects);
	object->made_by = made_by;
	mutex_unlock(&objects);
	return 0;
}

static int make_cq(struct soft_object *object, const void *in, int length)
{
	const void *cqc = MLX5_ADDR_OF(create_cq_in, in, cq_context);
	struct softcard_request request = {};
	int error;

	if (length < MLX5_BYTE_OFF(create_cq_in, pas) || !MLX5_GET(create_cq_in, in, cq_umem_valid) ||
	    !MLX5_GET(cqc, cqc, dbr_umem_valid))
		return -EINVAL;
	/* Entries of 64 bytes, each in its place. */
	if (MLX5_GET(cqc, cqc, cqe_sz) || MLX5_GET(cqc, cqc, cc) || MLX5_GET(cqc, cqc, cqe_comp_en))
		return -EOPNOTSUPP;
	if (MLX5_GET(cqc, cqc, c_eqn_or_apu_element) != EVENT_QUEUE ||
	    MLX5_GET(cqc, cqc, log_cq_size) > ilog2(MAX_CQE) ||
	    !owns_uar(object->owner, MLX5_GET(cqc, cqc, uar_page)))
		return -EINVAL;
	request.cq.count = 1u << MLX5_GET(cqc, cqc, log_cq_size);
	request.cq.uar = MLX5_GET(cqc, cqc, uar_page);
	request.cq.ignores_overrun = MLX5_GET(cqc, cqc, oi);
	error = use_memory(object, 0, word_at(in, CREATE_CQ_UMEM_ID), long_at(in, CREATE_CQ_UMEM_OFFSET),
			   (u64)request.cq.count * 64, &request.cq.entries);
	if (!error)
		error = use_memory(object, 1, word_at(cqc, CQC_DBR_UMEM_ID), MLX5_GET64(cqc, cqc, dbr_addr), 8,
				   &request.cq.record);
	if (error)
		return error;
	object->cq.devx = object;
	return make(object, &cqs, &object->cq, SOFTCARD_NEW_CQ, MLX5_CMD_OP_CREATE_CQ, &request);
}

static int make_rmp(struct soft_object *object, const void *in, int length)
{
	const void *rmpc = MLX5_ADDR_OF(create_rmp_in, in, ctx);
	const void *wq = MLX5_ADDR_OF(rmpc, rmpc, wq);
	struct softcard_request request = {};
	int error;

	if (length < MLX5_ST_SZ_BYTES(create_rmp_in) || !MLX5_GET(wq, wq, wq_umem_valid) ||
	    !MLX5_GET(wq, wq, dbr_umem_valid))
		return -EINVAL;
	switch (MLX5_GET(wq, wq, wq_type)) {
	case MLX5_WQ_TYPE_LINKED_LIST:
		break;
	case MLX5_WQ_TYPE_CYCLIC:
		if (!MLX5_GET(rmpc, rmpc, basic_cyclic_rcv_wqe))
			return -EINVAL;
		request.srq.is_cyclic = 1;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (MLX5_GET(rmpc, rmpc, state) != RMP_READY || MLX5_GET(wq, wq, log_wq_sz) > ilog2(MAX_ENTRIES) ||
	    MLX5_GET(wq, wq, log_wq_stride) < 4 || MLX5_GET(wq, wq, log_wq_stride) > 9 ||
	    !owns_pd(object->owner, MLX5_GET(wq, wq, pd)))
		return -EINVAL;
	request.srq.count = 1u << MLX5_GET(wq, wq, log_wq_sz);
	request.srq.shift = MLX5_GET(wq, wq, log_wq_stride);
	request.srq.pd = MLX5_GET(wq, wq, pd);
	error = use_memory(object, 0, word_at(wq, WQ_UMEM_ID), long_at(wq, WQ_UMEM_OFFSET),
			   (u64)request.srq.count << request.srq.shift, &request.srq.entries);
	if (!error)
		error = use_memory(object, 1, word_at(wq, WQ_DBR_UMEM_ID), MLX5_GET64(wq, wq, dbr_addr), 8,
				   &request.srq.record);
	if (error)
		return error;
	object->srq.devx = object;
	return make(object, &srqs, &object->srq, SOFTCARD_NEW_SRQ, MLX5_CMD_OP_CREATE_RMP, &request);
}

static int make_qp(struct soft_object *object, const void *in, int length)
{
	const void *qpc = MLX5_ADDR_OF(create_qp_in, in, qpc);
	struct softcard_request request = {};
	struct softcard_qp *wanted = &request.qp;
	int error;

	if (length < MLX5_BYTE_OFF(create_qp_in, pas) || !MLX5_GET(create_qp_in, in, wq_umem_valid) ||
	    !MLX5_GET(qpc, qpc, dbr_umem_valid))
		return -EINVAL;
	/* Reliable connections; data in completions is a card's choice, which this one does not make. */
	if (MLX5_GET(qpc, qpc, st) != QP_ST_RC || word_at(qpc, QPC_SEND_DBR_MODE) >> 31)
		return -EOPNOTSUPP;
	if (!MLX5_GET(qpc, qpc, no_sq))
		wanted->send_blocks = 1u << MLX5_GET(qpc, qpc, log_sq_size);
	switch (MLX5_GET(qpc, qpc, rq_type)) {
	case RQ_OWN:
		wanted->receives = 1u << MLX5_GET(qpc, qpc, log_rq_size);
		wanted->receive_shift = MLX5_GET(qpc, qpc, log_rq_stride) + 4;
		break;
	case RQ_SHARED:
		wanted->srq = use_srq(object, 2, MLX5_GET(qpc, qpc, srqn_rmpn_xrqn));
		if (!wanted->srq)
			return -EINVAL;
		break;
	case RQ_NONE:
		break;
	default:
		return -EOPNOTSUPP;
	}
	wanted->send_cq = use_cq(object, 0, MLX5_GET(qpc, qpc, cqn_snd));
	wanted->receive_cq = use_cq(object, 1, MLX5_GET(qpc, qpc, cqn_rcv));
	wanted->uar = MLX5_GET(qpc, qpc, uar_page);
	wanted->pd = MLX5_GET(qpc, qpc, pd);
	wanted->without_record = word_at(qpc, QPC_SEND_DBR_MODE) >> 30;
	wanted->is_master = MLX5_GET(qpc, qpc, cd_master);
	if (!wanted->send_cq || !wanted->receive_cq || wanted->send_blocks > most_blocks() ||
	    wanted->receives > MAX_ENTRIES || !owns_uar(object->owner, wanted->uar) ||
	    !owns_pd(object->owner, wanted->pd))
		return -EINVAL;
	error = use_memory(object, 0, word_at(in, CREATE_QP_UMEM_ID), long_at(in, CREATE_QP_UMEM_OFFSET),
			   ((u64)wanted->receives << wanted->receive_shift) + ((u64)wanted->send_blocks << 6),
			   &wanted->entries);
	if (!error)
		error = use_memory(object, 1, word_at(qpc, QPC_DBR_UMEM_ID), MLX5_GET64(qpc, qpc, dbr_addr), 8,
				   &wanted->record);
	if (error)
		return error;
	mutex_init(&object->qp.change);
	object->qp.attr.qp_state = IB_QPS_RESET;
	return make(object, &qps, &object->qp, SOFTCARD_NEW_QP, MLX5_CMD_OP_CREATE_QP, &request);
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_DEVX_OBJ_CREATE)(struct uverbs_attr_bundle *attrs)
{
	const void *in = uverbs_attr_get_alloced_ptr(attrs, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN);
	int in_length = uverbs_attr_get_len(attrs, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN);
	int out_length = uverbs_attr_get_len(attrs, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT);
	struct ib_uobject *uobject =
		uverbs_attr_get_uobject(attrs, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE);
	struct ib_ucontext *owner = owner_in(attrs);
	struct soft_object *object;
	void *out;
	int error;

	if (IS_ERR(owner))
		return PTR_ERR(owner);
	out = uverbs_zalloc(attrs, max_t(size_t, out_length, MLX5_ST_SZ_BYTES(create_qp_out)));
	if (IS_ERR(out))
		return PTR_ERR(out);
	object = kzalloc(sizeof(*object), GFP_KERNEL);
	if (!object)
		return -ENOMEM;
	object->owner = owner;
	switch (MLX5_GET(general_obj_in_cmd_hdr, in, opcode)) {
	case MLX5_CMD_OP_CREATE_CQ:
		error = make_cq(object, in, in_length);
		break;
	case MLX5_CMD_OP_CREATE_RMP:
		error = make_rmp(object, in, in_length);
		break;
	case MLX5_CMD_OP_CREATE_QP:
		error = make_qp(object, in, in_length);
		break;
	default:
		error = -EOPNOTSUPP;
	}
	if (error) {
		give_back(object);
		kfree(object);
		return error;
	}
	uobject->object = object;
	uverbs_finalize_uobj_create(attrs, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE);
	/* The answers to the three commands have it in the same place. */
	MLX5_SET(create_qp_out, out, qpn, object->number);
	return uverbs_copy_to(attrs, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out, out_length);
}

/* An object that others use cannot be removed. */
static int object_cleanup(struct ib_uobject *uobject, enum rdma_remove_reason why,
			  struct uverbs_attr_bundle *attrs)
{
	struct soft_object *object = uobject->object;
	struct soft_kind *of = &qps;
	u32 kind = SOFTCARD_FREE_QP;
	bool is_used;

	if (object->made_by == MLX5_CMD_OP_CREATE_CQ) {
		of = &cqs;
		kind = SOFTCARD_FREE_CQ;
	} else if (object->made_by == MLX5_CMD_OP_CREATE_RMP) {
		of = &srqs;
		kind = SOFTCARD_FREE_SRQ;
	}
	mutex_lock(&objects);
	is_used = object->users != 0;
	if (!is_used)
		object->made_by = 0;
	mutex_unlock(&objects);
	if (is_used)
		return -EBUSY;
	ask(kind, object->number, NULL);
	forget(of, object->number);
	give_back(object);
	kfree(object);
	return 0;
}

/* Reads a change of state. Returns the state before it; IB_QPS_ERR: any. */
static int read_change(const void *in, u16 opcode, struct softcard_state *state)
{
	const void *qpc = MLX5_ADDR_OF(rst2init_qp_in, in, qpc);
	const void *path = MLX5_ADDR_OF(qpc, qpc, primary_address_path);
	union ib_gid gid;
	int error;

	state->mask = SOFTCARD_STATE;
	switch (opcode) {
	case MLX5_CMD_OP_2RST_QP:
		state->state = IB_QPS_RESET;
		return IB_QPS_ERR;
	case MLX5_CMD_OP_2ERR_QP:
		state->state = IB_QPS_ERR;
		return IB_QPS_ERR;
	case MLX5_CMD_OP_RST2INIT_QP:
		if (MLX5_GET(ads, path, vhca_port_num) != 1 || MLX5_GET(ads, path, pkey_index))
			return -EINVAL;
		state->mask |= SOFTCARD_ACCESS;
		state->access = (MLX5_GET(qpc, qpc, rre) ? IB_ACCESS_REMOTE_READ : 0) |
				(MLX5_GET(qpc, qpc, rwe) ? IB_ACCESS_REMOTE_WRITE : 0) |
				(MLX5_GET(qpc, qpc, rae) ? IB_ACCESS_REMOTE_ATOMIC : 0);
		state->state = IB_QPS_INIT;
		return IB_QPS_RESET;
	case MLX5_CMD_OP_INIT2RTR_QP:
		if (!MLX5_GET(qpc, qpc, mtu) || MLX5_GET(qpc, qpc, mtu) > IB_MTU_4096 ||
		    !MLX5_GET(qpc, qpc, log_msg_max) || is_zero_ether_addr(MLX5_ADDR_OF(ads, path, rmac_47_32)))
			return -EINVAL;
		error = rdma_query_gid(&device->ib, 1, MLX5_GET(ads, path, src_addr_index), &gid);
		if (error)
			return error;
		state->mask |= SOFTCARD_PATH_CHANGE | SOFTCARD_PEER | SOFTCARD_RECEIVE_PSN | SOFTCARD_RNR_TIMER;
		memcpy(state->own_gid, gid.raw, 16);
		memcpy(state->peer_gid, MLX5_ADDR_OF(ads, path, rgid_rip), 16);
		state->peer = MLX5_GET(qpc, qpc, remote_qpn);
		state->receive_psn = MLX5_GET(qpc, qpc, next_rcv_psn);
		state->rnr_timer = MLX5_GET(qpc, qpc, min_rnr_nak);
		state->state = IB_QPS_RTR;
		return IB_QPS_INIT;
	case MLX5_CMD_OP_RTR2RTS_QP:
		state->mask |= SOFTCARD_SEND_PSN | SOFTCARD_RETRIES | SOFTCARD_RNR_RETRIES | SOFTCARD_TIMEOUT;
		state->send_psn = MLX5_GET(qpc, qpc, next_send_psn);
		state->retries = MLX5_GET(qpc, qpc, retry_count);
		state->rnr_retries = MLX5_GET(qpc, qpc, rnr_retry);
		state->timeout = MLX5_GET(ads, path, ack_timeout);
		state->state = IB_QPS_RTS;
		return IB_QPS_RTR;
	}
	return -EOPNOTSUPP;
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_DEVX_OBJ_MODIFY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobject =
		uverbs_attr_get_uobject(attrs, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE);
	const void *in = uverbs_attr_get_alloced_ptr(attrs, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN);
	int in_length = uverbs_attr_get_len(attrs, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN);
	int out_length = uverbs_attr_get_len(attrs, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT);
	u16 opcode = MLX5_GET(general_obj_in_cmd_hdr, in, opcode);
	struct soft_object *object = uobject->object;
	struct softcard_request request = {};
	struct soft_qp *qp = &object->qp;
	int before, error;
	void *out;

	if (object->made_by != MLX5_CMD_OP_CREATE_QP)
		return -EOPNOTSUPP;
	if (in_length < (opcode == MLX5_CMD_OP_2RST_QP || opcode == MLX5_CMD_OP_2ERR_QP
			 ? MLX5_ST_SZ_BYTES(qp_2rst_in) : MLX5_ST_SZ_BYTES(rst2init_qp_in)) ||
	    MLX5_GET(rst2init_qp_in, in, qpn) != object->number)
		return -EINVAL;
	out = uverbs_zalloc(attrs, out_length);
	if (IS_ERR(out))
		return PTR_ERR(out);
	before = read_change(in, opcode, &request.state);
	if (before < 0)
		return before;
	mutex_lock(&qp->change);
	if (before != IB_QPS_ERR && before != READ_ONCE(qp->attr.qp_state))
		error = -EINVAL;
	else
		error = ask_and_set(SOFTCARD_MODIFY_QP, object->number, &request, (u32 *)&qp->attr.qp_state,
				    request.state.state);
	mutex_unlock(&qp->change);
	return error ?: uverbs_copy_to(attrs, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, out, out_length);
}

DECLARE_UVERBS_NAMED_METHOD(
	MLX5_IB_METHOD_DEVX_OBJ_CREATE,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, MLX5_IB_OBJECT_DEVX_OBJ, UVERBS_ACCESS_NEW,
			UA_MANDATORY),
	COMMAND_IN(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN), COMMAND_OUT(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT));

DECLARE_UVERBS_NAMED_METHOD(
	MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, MLX5_IB_OBJECT_DEVX_OBJ, UVERBS_ACCESS_WRITE,
			UA_MANDATORY),
	COMMAND_IN(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN), COMMAND_OUT(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(
	MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, MLX5_IB_OBJECT_DEVX_OBJ,
			UVERBS_ACCESS_DESTROY, UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(MLX5_IB_OBJECT_DEVX_OBJ, UVERBS_TYPE_ALLOC_IDR(object_cleanup),
			    &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_OBJ_CREATE),
			    &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_OBJ_MODIFY),
			    &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_OBJ_DESTROY));

const struct uapi_definition devx_object_definitions[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(MLX5_IB_OBJECT_DEVX_OBJ),
	{},
};
