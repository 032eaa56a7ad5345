// SPDX-License-Identifier: GPL-2.0
/* The card's own commands (devx), which owners send through libmlx5: abilities, and memory for queues. */
#include <linux/log2.h>
#include <linux/mlx5/device.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#define UVERBS_MODULE_NAME mlx5_ib
#include <rdma/uverbs_named_ioctl.h>

#include "devx.h"

/* First bits of fields that the header of this kernel has no names for. */
#define CAP_WAIT_ON_TIME 0x68c
#define CAP_2_NO_DBR_EXT 0x2e1

#define HCA_CAP_GENERAL 0
#define HCA_CAP_2 0x20

DEFINE_XARRAY_ALLOC1(umems);
static u32 next_umem;

static void set_bit_at(void *structure, u32 bit)
{
	((__be32 *)structure)[bit / 32] |= cpu_to_be32(1u << (31 - bit % 32));
}

struct ib_ucontext *owner_in(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *owner = ib_uverbs_get_ucontext(attrs);

	if (!IS_ERR(owner) && !container_of(owner, struct soft_context, ib)->has_devx)
		return ERR_PTR(-EINVAL);
	return owner;
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_DEVX_OTHER)(struct uverbs_attr_bundle *attrs)
{
	const void *in = uverbs_attr_get_alloced_ptr(attrs, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN);
	int length = uverbs_attr_get_len(attrs, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT);
	struct ib_ucontext *owner = owner_in(attrs);
	void *out, *cap;

	if (IS_ERR(owner))
		return PTR_ERR(owner);
	if (MLX5_GET(general_obj_in_cmd_hdr, in, opcode) != MLX5_CMD_OP_QUERY_HCA_CAP)
		return -EOPNOTSUPP;
	out = uverbs_zalloc(attrs, max_t(size_t, length, MLX5_ST_SZ_BYTES(query_hca_cap_out)));
	if (IS_ERR(out))
		return PTR_ERR(out);
	cap = MLX5_ADDR_OF(query_hca_cap_out, out, capability);
	/* The lowest bit asks for the current value instead of the greatest. */
	switch (MLX5_GET(query_hca_cap_in, in, op_mod) >> 1) {
	case HCA_CAP_GENERAL:
		MLX5_SET(cmd_hca_cap, cap, cd, 1);
		MLX5_SET(cmd_hca_cap, cap, rc, 1);
		MLX5_SET(cmd_hca_cap, cap, roce, 1);
		MLX5_SET(cmd_hca_cap, cap, log_max_cq, 12);
		MLX5_SET(cmd_hca_cap, cap, log_max_cq_sz, ilog2(MAX_CQE));
		MLX5_SET(cmd_hca_cap, cap, log_max_qp, 12);
		MLX5_SET(cmd_hca_cap, cap, log_max_qp_sz, ilog2(most_blocks()));
		MLX5_SET(cmd_hca_cap, cap, log_max_rmp, 12);
		set_bit_at(cap, CAP_WAIT_ON_TIME);
		break;
	case HCA_CAP_2:
		set_bit_at(cap, CAP_2_NO_DBR_EXT);
		break;
	}
	return uverbs_copy_to(attrs, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, out, length);
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_DEVX_QUERY_EQN)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *owner = owner_in(attrs);
	u32 number = EVENT_QUEUE, vector;
	int error;

	if (IS_ERR(owner))
		return PTR_ERR(owner);
	error = uverbs_copy_from(&vector, attrs, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC);
	if (error)
		return error;
	if (vector >= device->ib.num_comp_vectors)
		return -EINVAL;
	return uverbs_copy_to(attrs, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, &number, sizeof(number));
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_DEVX_UMEM_REG)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *object = uverbs_attr_get_uobject(attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE);
	struct ib_ucontext *owner = owner_in(attrs);
	struct ib_umem_dmabuf *dma_buf;
	struct soft_umem *umem;
	u64 address, length;
	u32 access;
	int error, fd;

	if (IS_ERR(owner))
		return PTR_ERR(owner);
	error = uverbs_copy_from(&address, attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR);
	if (!error)
		error = uverbs_copy_from(&length, attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN);
	if (!error)
		error = uverbs_get_flags32(&access, attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS,
					   IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
					   IB_ACCESS_REMOTE_READ);
	if (error)
		return error;
	if (!length || length >= 1ull << (AREA_SHIFT - 1))
		return -EINVAL;
	umem = kzalloc(sizeof(*umem), GFP_KERNEL);
	if (!umem)
		return -ENOMEM;
	umem->owner = owner;
	if (uverbs_attr_is_valid(attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD)) {
		error = uverbs_get_raw_fd(&fd, attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD);
		if (!error) {
			dma_buf = ib_umem_dmabuf_get_pinned(&device->ib, address, length, fd, access);
			error = IS_ERR(dma_buf) ? PTR_ERR(dma_buf)
						: take_umem(&umem->area, &dma_buf->umem, access);
		}
	} else {
		error = pin(&umem->area, address, length, access);
	}
	if (error)
		goto not_pinned;
	if (xa_alloc_cyclic(&umems, &umem->number, umem, XA_LIMIT(1, MAX_NUMBER), &next_umem, GFP_KERNEL) < 0) {
		error = -ENOMEM;
		goto no_number;
	}
	object->object = umem;
	uverbs_finalize_uobj_create(attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE);
	return uverbs_copy_to(attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, &umem->number, sizeof(umem->number));
no_number:
	free_area(&umem->area);
not_pinned:
	kfree(umem);
	return error;
}

/* Memory that queues lie in cannot be removed. */
static int umem_cleanup(struct ib_uobject *object, enum rdma_remove_reason why,
			struct uverbs_attr_bundle *attrs)
{
	struct soft_umem *umem = object->object;
	bool is_used;

	mutex_lock(&objects);
	is_used = umem->users != 0;
	if (!is_used)
		xa_erase(&umems, umem->number);
	mutex_unlock(&objects);
	if (is_used)
		return -EBUSY;
	free_area(&umem->area);
	kfree(umem);
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(MLX5_IB_METHOD_DEVX_OTHER, COMMAND_IN(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN),
			    COMMAND_OUT(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT));

DECLARE_UVERBS_NAMED_METHOD(
	MLX5_IB_METHOD_DEVX_QUERY_EQN,
	UVERBS_ATTR_PTR_IN(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, UVERBS_ATTR_TYPE(u32), UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(MLX5_IB_OBJECT_DEVX, &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_OTHER),
			      &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_QUERY_EQN));

DECLARE_UVERBS_NAMED_METHOD(
	MLX5_IB_METHOD_DEVX_UMEM_REG,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, MLX5_IB_OBJECT_DEVX_UMEM, UVERBS_ACCESS_NEW,
			UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
	UVERBS_ATTR_RAW_FD(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, UA_OPTIONAL),
	UVERBS_ATTR_FLAGS_IN(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, enum ib_access_flags),
	UVERBS_ATTR_CONST_IN(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, u64, UA_OPTIONAL),
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, UVERBS_ATTR_TYPE(u32), UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(
	MLX5_IB_METHOD_DEVX_UMEM_DEREG,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, MLX5_IB_OBJECT_DEVX_UMEM,
			UVERBS_ACCESS_DESTROY, UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(MLX5_IB_OBJECT_DEVX_UMEM, UVERBS_TYPE_ALLOC_IDR(umem_cleanup),
			    &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_UMEM_REG),
			    &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_UMEM_DEREG));

const struct uapi_definition devx_definitions[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(MLX5_IB_OBJECT_DEVX),
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(MLX5_IB_OBJECT_DEVX_UMEM),
	UAPI_DEF_CHAIN(devx_object_definitions),
	{},
};
