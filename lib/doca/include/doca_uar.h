/// Pages of a card's registers (UAR), whose doorbells start its work.
///
/// All calls return DOCA_ERROR_INVALID_VALUE if an argument is NULL.
#ifndef DOCA_UAR_H_
#define DOCA_UAR_H_

#include <stdint.h>

#include "doca_dev.h"
#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_uar;

/// The memory type of the registers, as the processor sees them.
enum doca_uar_allocation_type {
  DOCA_UAR_ALLOCATION_TYPE_BLUEFLAME = 0,  ///< with write combining; of no other queue pair
  DOCA_UAR_ALLOCATION_TYPE_NONCACHE = 1,   ///< not cached, and without write combining
  DOCA_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED = 2  ///< the same, of no other queue pair
};

/// Allocates a page. DOCA_ERROR_NOT_SUPPORTED if the device is no mlx5 card, takes no commands of
/// programs (devx), or libmlx5 does not know the type.
doca_error_t doca_uar_create(struct doca_dev* dev, enum doca_uar_allocation_type allocation_type,
                             struct doca_uar** uar);
/// DOCA_ERROR_IN_USE while a completion queue or a queue pair uses it.
doca_error_t doca_uar_destroy(struct doca_uar* uar);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
