/// GPUs, and memory that kernels use.
///
/// A GPU is one that CUDA knows, or a host GPU of OFFLOAD_DOCA_GPUS: threads of the program stand
/// in for its kernels. Where memory of a GPU is allocated or freed, CUDA may wait until all kernels
/// have ended: by the calls below, the start and stop of an array of buffers, and the start and
/// destruction of a context whose data path is on the GPU. So a program calls them before it
/// launches a kernel that it has to end itself. All calls return DOCA_ERROR_INVALID_VALUE if a
/// pointer is NULL. Any thread.
#ifndef DOCA_GPUNETIO_H_
#define DOCA_GPUNETIO_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_error.h"
#include "doca_gpunetio_verbs_def.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_gpu;
struct doca_dev;
struct doca_verbs_cq;
struct doca_verbs_qp;
/// A queue pair of verbs that kernels use.
struct doca_gpu_verbs_qp;

/// Accesses a variable that other processors, or kernels, access at the same time.
#define DOCA_GPUNETIO_VOLATILE(x) (*(volatile __typeof__(x) *)&(x))

enum doca_gpu_mem_type {
  /// Memory of the GPU: the CPU has no address for it. A host GPU gives none either.
  DOCA_GPU_MEM_TYPE_GPU = 0,
  /// Memory that both access. Here it is pinned memory of the host.
  DOCA_GPU_MEM_TYPE_GPU_CPU = 1,
  /// Pinned memory of the host that both access.
  DOCA_GPU_MEM_TYPE_CPU_GPU = 2
};

/// Opens the GPU at a PCI address, as "17:00.0". DOCA_ERROR_NOT_SUPPORTED if it is no host GPU, and
/// the library is built without CUDA or the machine has no GPU; DOCA_ERROR_NOT_FOUND if CUDA has
/// other GPUs only.
doca_error_t doca_gpu_create(const char *gpu_bus_id, struct doca_gpu **gpu_dev);
/// Ends the handle. Memory that the program has not freed is freed with it, or at the end of the last
/// UMEM of the GPU. DOCA_ERROR_IN_USE while an array of buffers, a context or an exported queue pair
/// uses it.
doca_error_t doca_gpu_destroy(struct doca_gpu *gpu_dev);

/// Allocates `size` zeroed bytes. `alignment`: a power of two, or 0 for the default.
/// `memptr_gpu`: the address for kernels. `memptr_cpu`: that for the CPU, NULL for
/// DOCA_GPU_MEM_TYPE_GPU, for which the pointer may be NULL. DOCA_ERROR_NO_MEMORY if there is none.
doca_error_t doca_gpu_mem_alloc(struct doca_gpu *gpu_dev, size_t size, size_t alignment,
                                enum doca_gpu_mem_type mtype, void **memptr_gpu,
                                void **memptr_cpu);
/// Frees what the call before returned as the address for kernels. DOCA_ERROR_NOT_FOUND if
/// `memptr_gpu` is no such address.
doca_error_t doca_gpu_mem_free(struct doca_gpu *gpu_dev, void *memptr_gpu);
/// Exports memory of the GPU as a dma-buf, by which a network card reaches it. Address and size:
/// whole pages of the host. The program closes the descriptor. DOCA_ERROR_NOT_SUPPORTED if the
/// driver exports none, for memory of other kinds too, and for a host GPU.
doca_error_t doca_gpu_dmabuf_fd(struct doca_gpu *gpu_dev, void *memptr_gpu, size_t size,
                                int *dmabuf_fd);

/// Makes a queue pair usable by kernels of the GPU. It has an external data path, and so have its
/// queues of completions, `cq_sq` and `cq_rq`. `gpu_qp_umem_dev_ptr`: where kernels see the first
/// byte of the memory of its rings. `nic_handler`: the ringer of its doorbell. While it is exported,
/// queue pair, queues and memory stay as they are; only kernels post and poll, any number of threads
/// at the same time. Words that the GPU cannot reach, those of memory of the host and of registers,
/// are relayed: by the library's thread, or by the program with
/// DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY. DOCA_ERROR_INVALID_VALUE if the objects do not belong
/// together or have their own data path; DOCA_ERROR_NOT_SUPPORTED if the GPU must ring the doorbell
/// and does not reach the registers.
doca_error_t doca_gpu_verbs_export_qp(struct doca_gpu *gpu_dev, struct doca_dev *dev,
                                      struct doca_verbs_qp *qp,
                                      enum doca_gpu_dev_verbs_nic_handler nic_handler,
                                      void *gpu_qp_umem_dev_ptr, struct doca_verbs_cq *cq_sq,
                                      struct doca_verbs_cq *cq_rq,
                                      struct doca_gpu_verbs_qp **qp_out);
/// Ends the use by kernels, none of which uses it any more. DOCA_ERROR_INVALID_VALUE for another
/// GPU.
doca_error_t doca_gpu_verbs_unexport_qp(struct doca_gpu *gpu_dev, struct doca_gpu_verbs_qp *qp);
/// Sets the handle for kernels, which is valid until the end of the export.
doca_error_t doca_gpu_verbs_get_qp_dev(struct doca_gpu_verbs_qp *qp,
                                       struct doca_gpu_dev_verbs_qp **qp_gpu);
/// Hands what kernels have posted to the card. To be called again and again by one thread at a time,
/// while kernels use a queue pair with DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY;
/// DOCA_ERROR_BAD_STATE for others.
doca_error_t doca_gpu_verbs_cpu_proxy_progress(struct doca_gpu_verbs_qp *qp);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
