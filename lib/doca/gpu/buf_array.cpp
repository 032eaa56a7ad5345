#include <cstring>
#include <optional>

#include "core/error.hpp"
#include "doca/gpu/gpu.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_buf_array.h"
#include "doca/include/doca_gpunetio_dev_buf.cuh"
#include "doca/mmap.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace

namespace {

constexpr std::size_t kMostBuffers = std::size_t{1} << 24;

}  // namespace

/// An array of buffers; its elements in the GPU's memory exist while it is started.
struct doca_buf_arr {
  explicit doca_buf_arr(std::size_t buffers) : count(buffers) {}

  std::size_t count;
  std::optional<GpuUse> gpu;
  doca_mmap* mmap = nullptr;
  std::size_t size = 0;  ///< of a buffer
  std::uint64_t offset = 0;
  std::optional<doca_gpu::Piece> elements;
};

doca_error_t doca_buf_arr_create(size_t num_elem, doca_buf_arr** buf_arr) {
  if (buf_arr == nullptr || num_elem == 0 || num_elem > kMostBuffers) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  return guarded(__func__, [&] { *buf_arr = new doca_buf_arr(num_elem); });
}

doca_error_t doca_buf_arr_destroy(doca_buf_arr* buf_arr) {
  if (buf_arr == nullptr) return DOCA_ERROR_INVALID_VALUE;
  delete buf_arr;
  return DOCA_SUCCESS;
}

doca_error_t doca_buf_arr_set_target_gpu(doca_buf_arr* buf_arr, doca_gpu* gpu_handler) {
  if (any_null(buf_arr, gpu_handler)) return DOCA_ERROR_INVALID_VALUE;
  if (buf_arr->elements) return DOCA_ERROR_BAD_STATE;
  buf_arr->gpu.emplace(*gpu_handler);
  return DOCA_SUCCESS;
}

doca_error_t doca_buf_arr_set_params(doca_buf_arr* buf_arr, doca_mmap* mmap, size_t elem_size,
                                     uint64_t start_offset) {
  if (any_null(buf_arr, mmap) || elem_size == 0) return DOCA_ERROR_INVALID_VALUE;
  if (buf_arr->elements) return DOCA_ERROR_BAD_STATE;
  buf_arr->mmap = mmap;
  buf_arr->size = elem_size;
  buf_arr->offset = start_offset;
  return DOCA_SUCCESS;
}

doca_error_t doca_buf_arr_start(doca_buf_arr* buf_arr) {
  if (buf_arr == nullptr) return DOCA_ERROR_INVALID_VALUE;
  doca_buf_arr& array = *buf_arr;
  if (array.elements || !array.gpu || array.mmap == nullptr || array.mmap->key == 0) {
    return DOCA_ERROR_BAD_STATE;
  }
  const std::size_t room = array.mmap->memory.size();
  if (array.offset > room || array.count > (room - array.offset) / array.size) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  return guarded(__func__, [&] {
    const std::size_t size = sizeof(doca_gpu_buf_arr) + array.count * sizeof(doca_gpu_buf);
    const doca_gpu::Piece staging = (*array.gpu)->allocate(size, alignof(doca_gpu_buf), true);
    const doca_gpu_buf_arr head{.count = array.count, .reserved = 0};
    std::memcpy(staging.cpu, &head, sizeof head);
    auto* to = static_cast<std::byte*>(staging.cpu) + sizeof head;
    auto address = reinterpret_cast<std::uintptr_t>(array.mmap->memory.data()) + array.offset;
    for (std::size_t i = 0; i < array.count;
         ++i, address += array.size, to += sizeof(doca_gpu_buf)) {
      const doca_gpu_buf buffer{.address = address, .mkey = array.mmap->key, .reserved = 0};
      std::memcpy(to, &buffer, sizeof buffer);
    }
    doca_gpu::Piece elements = (*array.gpu)->allocate(size, alignof(doca_gpu_buf), false);
    (*array.gpu)->copy_in(elements.gpu, staging.cpu, size);
    (*array.gpu)->sync();
    array.elements = std::move(elements);
  });
}

doca_error_t doca_buf_arr_stop(doca_buf_arr* buf_arr) {
  if (buf_arr == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (!buf_arr->elements) return DOCA_ERROR_BAD_STATE;
  buf_arr->elements.reset();
  return DOCA_SUCCESS;
}

doca_error_t doca_buf_arr_get_gpu_handle(const doca_buf_arr* buf_arr,
                                         doca_gpu_buf_arr** gpu_buf_arr) {
  if (any_null(buf_arr, gpu_buf_arr)) return DOCA_ERROR_INVALID_VALUE;
  if (!buf_arr->elements) return DOCA_ERROR_BAD_STATE;
  *gpu_buf_arr = static_cast<doca_gpu_buf_arr*>(buf_arr->elements->gpu);
  return DOCA_SUCCESS;
}
