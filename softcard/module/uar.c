// SPDX-License-Identifier: GPL-2.0
/* Pages of doorbells: objects of mlx5's own. */
#include <linux/mm.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#define UVERBS_MODULE_NAME mlx5_ib
#include <rdma/uverbs_named_ioctl.h>

#include "device.h"

static DEFINE_XARRAY_ALLOC1(uars);
static u32 next_uar;

int map_page(struct vm_area_struct *vma, struct page *page)
{
	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	return vm_insert_page(vma, vma->vm_start, page);
}

void free_uar(struct rdma_user_mmap_entry *entry)
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

int map_uar(struct ib_ucontext *context, struct vm_area_struct *vma)
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

const struct uapi_definition softcard_definitions[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(MLX5_IB_OBJECT_UAR),
	UAPI_DEF_CHAIN(devx_definitions),
	{},
};

struct ib_ucontext *owner_of(struct ib_udata *udata)
{
	struct soft_context *context = rdma_udata_to_drv_context(udata, struct soft_context, ib);

	return context ? &context->ib : NULL;
}

bool owns_uar(struct ib_ucontext *owner, u32 number)
{
	struct soft_uar *uar;
	bool owns;

	xa_lock(&uars);
	uar = xa_load(&uars, number);
	owns = uar && uar->owner == owner;
	xa_unlock(&uars);
	return owns;
}
