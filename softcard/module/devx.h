/* SPDX-License-Identifier: GPL-2.0 */
/* The declarations that the files of the card's own commands share. */
#ifndef SOFTCARD_DEVX_H
#define SOFTCARD_DEVX_H

#include "device.h"

#define EVENT_QUEUE 1 /* its number: there is one */

#define COMMAND_IN(id)								\
	UVERBS_ATTR_PTR_IN(id, UVERBS_ATTR_MIN_SIZE(MLX5_ST_SZ_BYTES(general_obj_in_cmd_hdr)), UA_MANDATORY,	\
			   UA_ALLOC_AND_COPY)
#define COMMAND_OUT(id)								\
	UVERBS_ATTR_PTR_OUT(id, UVERBS_ATTR_MIN_SIZE(MLX5_ST_SZ_BYTES(general_obj_out_cmd_hdr)), UA_MANDATORY)

/* Memory for queues; the lock `objects` guards its users. */
struct soft_umem {
	struct area area;
	struct ib_ucontext *owner;
	u32 number;
	u32 users;
};

extern struct xarray umems;
extern const struct uapi_definition devx_object_definitions[];

/* Returns the caller's context, if it was opened for the card's own commands. */
struct ib_ucontext *owner_in(struct uverbs_attr_bundle *attrs);

#endif
