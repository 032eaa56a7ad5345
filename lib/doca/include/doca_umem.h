/// Memory of the program that a card knows for rings and records of its queues (UMEM).
///
/// All calls return DOCA_ERROR_INVALID_VALUE if a pointer is NULL or the memory is empty, and
/// DOCA_ERROR_NOT_SUPPORTED if the device is no mlx5 card, or takes no commands of programs (devx).
#ifndef DOCA_UMEM_H_
#define DOCA_UMEM_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_dev.h"
#include "doca_error.h"
#include "doca_gpunetio.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_umem;

/// Makes memory of the host known, which outlives the object and begins at a page. `access_flags`:
/// flags of doca_access_flag; the card alone accesses it, so the rights of peers have no effect.
/// DOCA_ERROR_INVALID_VALUE for unknown flags.
doca_error_t doca_umem_create(struct doca_dev* dev, void* address, size_t size,
                              uint32_t access_flags, struct doca_umem** umem);
/// Does the same for memory of the GPU: by its dma-buf, or by its address where the driver exports
/// none.
doca_error_t doca_umem_gpu_create(struct doca_gpu* gpu_dev, struct doca_dev* dev, void* address,
                                  size_t size, uint32_t access_flags, struct doca_umem** umem);
/// DOCA_ERROR_IN_USE while a completion queue or a queue pair uses it.
doca_error_t doca_umem_destroy(struct doca_umem* umem);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
