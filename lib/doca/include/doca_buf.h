/// Buffers: descriptors of pieces of mmaps, with the place of the data in them.
///
/// A source is read from its data; a destination is written behind its data, which then becomes
/// longer. A buffer belongs to the inventory that it came from and has a count of references; it
/// returns to the inventory with the last one. Tasks in flight hold references that are not counted
/// here and that no call drops. Buffers can be linked to a list, which holds one reference to each
/// but the first. All calls return DOCA_ERROR_INVALID_VALUE for NULL and for a buffer that was
/// returned. One thread: that of the inventory.
#ifndef DOCA_BUF_H_
#define DOCA_BUF_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_buf;

/// Adds a reference. `refcount`: the count before, may be NULL. DOCA_ERROR_NOT_PERMITTED for a
/// buffer of a list that is not its first, DOCA_ERROR_TOO_BIG for more than UINT16_MAX.
doca_error_t doca_buf_inc_refcount(struct doca_buf *buf, uint16_t *refcount);
/// Drops a reference, and with the last one those of the list behind it. The rest as above, but
/// DOCA_ERROR_BAD_STATE if the count is 0.
doca_error_t doca_buf_dec_refcount(struct doca_buf *buf, uint16_t *refcount);
doca_error_t doca_buf_get_refcount(const struct doca_buf *buf, uint16_t *refcount);

/// The length and the address of the whole piece.
doca_error_t doca_buf_get_len(const struct doca_buf *buf, size_t *len);
doca_error_t doca_buf_get_head(const struct doca_buf *buf, void **head);
/// The address and the length of the data.
doca_error_t doca_buf_get_data(const struct doca_buf *buf, void **data);
doca_error_t doca_buf_get_data_len(const struct doca_buf *buf, size_t *data_len);
/// DOCA_ERROR_INVALID_VALUE if the data is not within the piece.
doca_error_t doca_buf_set_data(struct doca_buf *buf, void *data, size_t data_len);
doca_error_t doca_buf_set_data_len(struct doca_buf *buf, size_t data_len);
/// Drops the data; its address stays.
doca_error_t doca_buf_reset_data_len(struct doca_buf *buf);

/// Appends the list that `list2` begins to that of `list1`, and takes over the reference to
/// `list2`. DOCA_ERROR_INVALID_VALUE if both are the same list or one is not the first of its list,
/// DOCA_ERROR_NOT_PERMITTED if `list2` has another reference, also that of a task in flight.
doca_error_t doca_buf_chain_list(struct doca_buf *list1, struct doca_buf *list2);
/// Cuts the list of `list1` before `list2`, whose reference is the program's again.
/// DOCA_ERROR_INVALID_VALUE if `list1` is not first, or `list2` does not follow it.
doca_error_t doca_buf_unchain_list(struct doca_buf *list1, struct doca_buf *list2);
/// The next buffer of the list; NULL at its end.
doca_error_t doca_buf_get_next_in_list(struct doca_buf *buf, struct doca_buf **next);
doca_error_t doca_buf_get_last_in_list(struct doca_buf *buf, struct doca_buf **last);
doca_error_t doca_buf_is_first_in_list(const struct doca_buf *buf, uint8_t *is_first);
doca_error_t doca_buf_is_last_in_list(const struct doca_buf *buf, uint8_t *is_last);
/// The number of buffers of the list. DOCA_ERROR_NOT_PERMITTED if `buf` is not its first.
doca_error_t doca_buf_get_list_len(const struct doca_buf *buf, uint32_t *num_elements);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
