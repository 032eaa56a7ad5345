/// Inventories: fixed numbers of buffers that can describe any piece of any mmap.
///
/// Nothing is allocated after the creation. All calls return DOCA_ERROR_INVALID_VALUE if an
/// argument is NULL. One thread.
#ifndef DOCA_BUF_INVENTORY_H_
#define DOCA_BUF_INVENTORY_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_buf.h"
#include "doca_error.h"
#include "doca_mmap.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_buf_inventory;

/// DOCA_ERROR_INVALID_VALUE for no elements.
doca_error_t doca_buf_inventory_create(size_t num_elements, struct doca_buf_inventory **inventory);
/// Stops it if it is started, and frees it. DOCA_ERROR_IN_USE while buffers of it are in use.
doca_error_t doca_buf_inventory_destroy(struct doca_buf_inventory *inventory);
/// DOCA_ERROR_BAD_STATE if it is started.
doca_error_t doca_buf_inventory_start(struct doca_buf_inventory *inventory);
/// DOCA_ERROR_BAD_STATE if it is stopped, DOCA_ERROR_IN_USE while buffers of it are in use.
doca_error_t doca_buf_inventory_stop(struct doca_buf_inventory *inventory);

/// These take a buffer, whose one reference is the program's. DOCA_ERROR_NOT_PERMITTED if the
/// inventory or the mmap is not started, DOCA_ERROR_NO_MEMORY if all buffers are in use,
/// DOCA_ERROR_INVALID_VALUE for an empty piece, one that is not within the mmap, or data that is
/// not within the piece.

doca_error_t doca_buf_inventory_buf_get_by_args(struct doca_buf_inventory *inventory,
                                                struct doca_mmap *mmap, void *addr, size_t len,
                                                void *data, size_t data_len, struct doca_buf **buf);
/// Without data, as a destination.
doca_error_t doca_buf_inventory_buf_get_by_addr(struct doca_buf_inventory *inventory,
                                                struct doca_mmap *mmap, void *addr, size_t len,
                                                struct doca_buf **buf);
/// All of it data, as a source.
doca_error_t doca_buf_inventory_buf_get_by_data(struct doca_buf_inventory *inventory,
                                                struct doca_mmap *mmap, void *data, size_t data_len,
                                                struct doca_buf **buf);
/// The same piece and data as `src_buf`, in no list.
doca_error_t doca_buf_inventory_buf_dup(struct doca_buf_inventory *inventory,
                                        const struct doca_buf *src_buf, struct doca_buf **dst_buf);

doca_error_t doca_buf_inventory_get_num_elements(struct doca_buf_inventory *inventory,
                                                 uint32_t *num_elements);
doca_error_t doca_buf_inventory_get_num_free_elements(struct doca_buf_inventory *inventory,
                                                      uint32_t *num_free_elements);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
