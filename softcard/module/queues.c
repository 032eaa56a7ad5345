// SPDX-License-Identifier: GPL-2.0
/* Completion queues and shared receive queues. */
#include <linux/log2.h>

#include "device.h"

SOFT_KIND(cqs);
SOFT_KIND(srqs);
SOFT_KIND(qps);
DEFINE_MUTEX(objects);

int give_number(struct soft_kind *kind, void *object, u32 *to)
{
	return xa_alloc_cyclic(&kind->objects, to, object, XA_LIMIT(FIRST_NUMBER, MAX_NUMBER), &kind->next,
			       GFP_KERNEL) < 0 ? -ENOMEM : 0;
}

void forget(struct soft_kind *kind, u32 number)
{
	mutex_lock(&objects);
	xa_erase(&kind->objects, number);
	mutex_unlock(&objects);
}

static int create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
{
	struct soft_cq *cq = container_of(ib, struct soft_cq, ib);
	struct softcard_request request = {};
	struct mlx5_ib_create_cq_resp answer = {};
	struct mlx5_ib_create_cq wanted = {};
	int error;

	if (!udata) {
		init_kernel_cq(cq);
		ib->cqe = attr->cqe;
		return 0;
	}
	error = ib_copy_from_udata(&wanted, udata, min(sizeof(wanted), udata->inlen));
	if (error)
		return error;
	if (attr->cqe >= MAX_CQE || attr->flags & ~(IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN |
						   IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION))
		return -EINVAL;
	if (wanted.cqe_size != 64 || wanted.cqe_comp_en)
		return -EOPNOTSUPP;
	if (!(wanted.flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX) || !owns_uar(owner_of(udata), wanted.uar_page_index))
		return -EINVAL;
	request.cq.count = roundup_pow_of_two(attr->cqe + 1);
	request.cq.uar = wanted.uar_page_index;
	request.cq.ignores_overrun = !!(attr->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN);
	error = pin_ring(&cq->entries, wanted.buf_addr, (u64)request.cq.count * 64, &cq->record,
			 wanted.db_addr);
	if (error)
		return error;
	error = give_number(&cqs, cq, &cq->number);
	if (error)
		goto no_number;
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
	forget(&cqs, cq->number);
no_number:
	free_area(&cq->record);
	free_area(&cq->entries);
	return error;
}

static int destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	struct soft_cq *cq = container_of(ib, struct soft_cq, ib);

	if (cq->is_kernel) {
		drain_kernel_cq(cq);
		return 0;
	}
	ask(SOFTCARD_FREE_CQ, cq->number, NULL);
	forget(&cqs, cq->number);
	free_area(&cq->record);
	free_area(&cq->entries);
	return 0;
}

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
	error = give_number(&srqs, srq, &srq->number);
	if (error)
		goto no_number;
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
	forget(&srqs, srq->number);
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

	if (mask & IB_SRQ_MAX_WR)
		return -EINVAL;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit >= srq->attr.max_wr)
		return -EINVAL;
	request.srq.limit = attr->srq_limit;
	/* The card may report right after its answer that the limit is reached. */
	return ask_and_set(SOFTCARD_MODIFY_SRQ, srq->number, &request, &srq->attr.srq_limit,
			   attr->srq_limit);
}

static int query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	mutex_lock(&objects);
	*attr = container_of(ib, struct soft_srq, ib)->attr;
	mutex_unlock(&objects);
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

const struct ib_device_ops queue_operations = {
	.create_cq = create_cq,
	.create_srq = create_srq,
	.destroy_cq = destroy_cq,
	.destroy_srq = destroy_srq,
	.modify_srq = modify_srq,
	.poll_cq = poll_kernel_cq,
	.query_srq = query_srq,
	.req_notify_cq = arm_kernel_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, soft_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, soft_srq, ib),
};
