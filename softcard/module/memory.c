// SPDX-License-Identifier: GPL-2.0
/* Protection domains, and memory under keys. */
#include "device.h"

static DEFINE_XARRAY_ALLOC1(keys);
static u32 next_key;
static DEFINE_XARRAY_ALLOC1(domains);
static u32 next_pd;

static int alloc_domain(struct ib_pd *ib, struct ib_udata *udata)
{
	struct soft_pd *pd = container_of(ib, struct soft_pd, ib);
	struct mlx5_ib_alloc_pd_resp answer = {};
	int error;

	if (udata)
		pd->owner = owner_of(udata);
	if (xa_alloc_cyclic(&domains, &pd->number, pd, XA_LIMIT(1, 0xffffff), &next_pd, GFP_KERNEL) < 0)
		return -ENOMEM;
	answer.pdn = pd->number;
	if (!udata)
		return 0;
	error = ib_copy_to_udata(udata, &answer, min(sizeof(answer), udata->outlen));
	if (error)
		xa_erase(&domains, pd->number);
	return error;
}

static int dealloc_domain(struct ib_pd *ib, struct ib_udata *udata)
{
	xa_erase(&domains, number_of(ib));
	return 0;
}

bool owns_pd(struct ib_ucontext *owner, u32 number)
{
	struct soft_pd *pd;
	bool owns;

	xa_lock(&domains);
	pd = xa_load(&domains, number);
	owns = pd && pd->owner == owner;
	xa_unlock(&domains);
	return owns;
}

u32 number_of(struct ib_pd *ib)
{
	return container_of(ib, struct soft_pd, ib)->number;
}


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

const struct ib_device_ops memory_operations = {
	.alloc_pd = alloc_domain,
	.dealloc_pd = dealloc_domain,
	.dereg_mr = dereg_mr,
	.get_dma_mr = dma_mr,
	.reg_user_mr = reg_mr,
	.reg_user_mr_dmabuf = reg_dmabuf,

	INIT_RDMA_OBJ_SIZE(ib_pd, soft_pd, ib),
};
