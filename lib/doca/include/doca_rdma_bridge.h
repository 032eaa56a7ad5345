/// The objects of libibverbs behind those of DOCA.
#ifndef DOCA_RDMA_BRIDGE_H_
#define DOCA_RDMA_BRIDGE_H_

#include <infiniband/verbs.h>

#include "doca_dev.h"
#include "doca_error.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Sets `pd` to the protection domain of an open device. It is valid until the device is closed;
/// the program must not end it. The first call opens the device at libibverbs.
/// DOCA_ERROR_INVALID_VALUE if an argument is NULL, DOCA_ERROR_NOT_SUPPORTED for a host device.
doca_error_t doca_rdma_bridge_get_dev_pd(const struct doca_dev* dev, struct ibv_pd** pd);

/// Makes an open device whose protection domain is one of the program, which outlives it.
/// doca_dev_close() closes it. DOCA_ERROR_INVALID_VALUE if an argument is NULL, DOCA_ERROR_NOT_FOUND
/// if the device has gone.
doca_error_t doca_rdma_bridge_open_dev_from_pd(struct ibv_pd* pd, struct doca_dev** dev);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
