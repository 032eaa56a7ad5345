// SPDX-License-Identifier: GPL-2.0
/* Queue pairs and their states. */
#include <linux/log2.h>

#include "device.h"

static int check_sizes(const struct mlx5_ib_create_qp *wanted, bool has_receives)
{
	if (wanted->sq_wqe_count > most_blocks() || wanted->rq_wqe_count > MAX_ENTRIES)
		return -EINVAL;
	if (wanted->sq_wqe_count && !is_power_of_2(wanted->sq_wqe_count))
		return -EINVAL;
	if (!has_receives)
		return 0;
	if (!is_power_of_2(wanted->rq_wqe_count) || wanted->rq_wqe_shift < 4 || wanted->rq_wqe_shift > 9)
		return -EINVAL;
	return 0;
}

/* Sets what a request of a queue pair for raw packets has beside the others, and pins its sends. */
static int describe_raw(struct soft_qp *qp, const struct mlx5_ib_create_qp *wanted, struct ib_udata *udata,
			struct softcard_qp *to)
{
	/* A card may have queue pairs that only send or only receive. */
	if (!to->receives || !to->send_blocks)
		return -EOPNOTSUPP;
	to->is_raw = 1;
	to->owner = container_of(owner_of(udata), struct soft_context, ib)->number;
	to->receives_own = !!(wanted->flags & MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC);
	return pin(&qp->sends, wanted->sq_buf_addr, (u64)to->send_blocks << 6, IB_ACCESS_LOCAL_WRITE);
}

static int create_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct soft_qp *qp = container_of(ib, struct soft_qp, ib);
	struct softcard_request request = {};
	struct mlx5_ib_create_qp_resp answer = {};
	struct mlx5_ib_create_qp wanted = {};
	bool is_raw = attr->qp_type == IB_QPT_RAW_PACKET;
	u32 allowed = MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE | MLX5_QP_FLAG_UAR_PAGE_INDEX;
	bool has_receives;
	u64 bytes;
	int error;

	if (attr->qp_type == IB_QPT_GSI && !udata) {
		mutex_init(&qp->change);
		qp->init = *attr;
		qp->attr.qp_state = IB_QPS_RESET;
		return create_manager(qp);
	}
	if (!udata || (attr->qp_type != IB_QPT_RC && attr->qp_type != IB_QPT_UC && !is_raw) || attr->create_flags)
		return -EOPNOTSUPP;
	error = ib_copy_from_udata(&wanted, udata, min(sizeof(wanted), udata->inlen));
	if (error)
		return error;
	has_receives = !attr->srq && attr->cap.max_recv_wr;
	error = check_sizes(&wanted, has_receives);
	if (error)
		return error;
	/* Short data in a completion is a card's choice, which this one does not make. */
	if (is_raw)
		allowed |= MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC;
	if (wanted.flags & ~allowed)
		return -EOPNOTSUPP;
	if (!(wanted.flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) || !owns_uar(owner_of(udata), wanted.bfreg_index))
		return -EINVAL;
	if (has_receives) {
		request.qp.receives = wanted.rq_wqe_count;
		request.qp.receive_shift = wanted.rq_wqe_shift;
	}
	request.qp.send_blocks = wanted.sq_wqe_count;
	bytes = (u64)request.qp.receives << request.qp.receive_shift;
	if (is_raw) {
		error = describe_raw(qp, &wanted, udata, &request.qp);
		if (error)
			return error;
	} else {
		bytes += (u64)wanted.sq_wqe_count << 6;
	}
	error = pin_ring(&qp->entries, wanted.buf_addr, max_t(u64, bytes, 64), &qp->record, wanted.db_addr);
	if (error)
		goto no_ring;
	error = give_number(&qps, qp, &ib->qp_num);
	if (error)
		goto no_number;
	mutex_init(&qp->change);
	qp->init = *attr;
	qp->attr.qp_state = IB_QPS_RESET;
	describe(&qp->entries, &request.qp.entries);
	if (is_raw)
		describe(&qp->sends, &request.qp.sends);
	describe(&qp->record, &request.qp.record);
	request.qp.send_cq = container_of(attr->send_cq, struct soft_cq, ib)->number;
	request.qp.receive_cq = container_of(attr->recv_cq, struct soft_cq, ib)->number;
	request.qp.srq = attr->srq ? container_of(attr->srq, struct soft_srq, ib)->number : 0;
	request.qp.uar = wanted.bfreg_index;
	request.qp.pd = number_of(ib->pd);
	request.qp.is_unreliable = attr->qp_type == IB_QPT_UC;
	error = ask(SOFTCARD_NEW_QP, ib->qp_num, &request);
	if (error)
		goto refused;
	error = ib_copy_to_udata(udata, &answer, min(sizeof(answer), udata->outlen));
	if (!error)
		return 0;
	ask(SOFTCARD_FREE_QP, ib->qp_num, NULL);
refused:
	forget(&qps, ib->qp_num);
no_number:
	free_area(&qp->record);
	free_area(&qp->entries);
no_ring:
	free_area(&qp->sends);
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
	/* The card may change the state to error right after its answer. */
	if (!qp->is_manager)
		error = ask_and_set(SOFTCARD_MODIFY_QP, ib->qp_num, &request,
				    mask & IB_QP_STATE ? (u32 *)&qp->attr.qp_state : NULL, next);
	else
		error = 0;
	if (error)
		goto out;
	mutex_lock(&objects);
	keep(&qp->attr, attr, mask);
	if (qp->is_manager && mask & IB_QP_STATE)
		qp->attr.qp_state = next;
	mutex_unlock(&objects);
	if (qp->is_manager && mask & IB_QP_STATE && next == IB_QPS_ERR)
		flush_manager(qp);
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

	if (qp->is_manager) {
		destroy_manager(qp);
		return 0;
	}
	ask(SOFTCARD_FREE_QP, ib->qp_num, NULL);
	forget(&qps, ib->qp_num);
	free_area(&qp->record);
	free_area(&qp->entries);
	free_area(&qp->sends);
	return 0;
}

const struct ib_device_ops pair_operations = {
	.create_qp = create_qp,
	.destroy_qp = destroy_qp,
	.modify_qp = modify_qp,
	.post_recv = post_manager_recv,
	.post_send = post_manager_send,
	.query_qp = query_qp,

	INIT_RDMA_OBJ_SIZE(ib_qp, soft_qp, ib),
};
