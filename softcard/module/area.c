// SPDX-License-Identifier: GPL-2.0
/* Pages of owners, which the card maps. */
#include <linux/mm.h>

#include "device.h"

DEFINE_XARRAY_ALLOC1(areas);
static u32 next_area;

int name_area(struct area *area)
{
	return xa_alloc_cyclic(&areas, &area->token, area, XA_LIMIT(1, (1 << 20) - 1), &next_area,
			       GFP_KERNEL) < 0 ? -ENOMEM : 0;
}

void free_area(struct area *area)
{
	if (area->token)
		take_from_card(area);
}

int take_umem(struct area *area, struct ib_umem *umem, int access)
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

int pin(struct area *area, u64 address, u64 length, int access)
{
	return take_umem(area, ib_umem_get(&device->ib, address, length, access), access);
}

void describe(const struct area *area, struct softcard_area *to)
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

int pin_ring(struct area *entries, u64 address, u64 length, struct area *record, u64 record_at)
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

