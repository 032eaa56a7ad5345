/// Arrays of buffers of equal size in the memory of one mmap, for kernels.
///
/// An array is configured, then started. All calls return DOCA_ERROR_INVALID_VALUE if an argument
/// is NULL. One thread at a time.
#ifndef DOCA_BUF_ARRAY_H_
#define DOCA_BUF_ARRAY_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_error.h"
#include "doca_gpunetio.h"
#include "doca_mmap.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_buf_arr;
/// An array in a kernel: doca_gpunetio_dev_buf.cuh.
struct doca_gpu_buf_arr;

/// Makes an array of `num_elem` buffers. DOCA_ERROR_INVALID_VALUE for none, or more than 2^24.
doca_error_t doca_buf_arr_create(size_t num_elem, struct doca_buf_arr **buf_arr);
/// Also stops it.
doca_error_t doca_buf_arr_destroy(struct doca_buf_arr *buf_arr);
/// Sets the GPU whose kernels use it. DOCA_ERROR_BAD_STATE if it is started.
doca_error_t doca_buf_arr_set_target_gpu(struct doca_buf_arr *buf_arr,
                                         struct doca_gpu *gpu_handler);
/// Sets the memory: buffer i has `elem_size` bytes from `start_offset` + i * `elem_size` on.
/// DOCA_ERROR_BAD_STATE if it is started.
doca_error_t doca_buf_arr_set_params(struct doca_buf_arr *buf_arr, struct doca_mmap *mmap,
                                     size_t elem_size, uint64_t start_offset);
/// Copies the addresses to the GPU. DOCA_ERROR_BAD_STATE if it is started, if GPU or memory is not
/// set, or the mmap is not started; DOCA_ERROR_INVALID_VALUE if the buffers do not lie in its
/// memory.
///
/// The mmap may be stopped before the array; then the buffers must not be used any more.
doca_error_t doca_buf_arr_start(struct doca_buf_arr *buf_arr);
/// DOCA_ERROR_BAD_STATE if it is not started. No kernel may use it any more.
doca_error_t doca_buf_arr_stop(struct doca_buf_arr *buf_arr);
/// Returns the handle for kernels, which is valid until the array is stopped. DOCA_ERROR_BAD_STATE
/// if it is not started.
doca_error_t doca_buf_arr_get_gpu_handle(const struct doca_buf_arr *buf_arr,
                                         struct doca_gpu_buf_arr **gpu_buf_arr);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
