/// Memory of the program that devices may access.
///
/// Its life: create, set the range and the rights, add devices, start; then buffers of it are taken
/// from inventories. Stop it only when all of them are returned. Setup calls return
/// DOCA_ERROR_INVALID_VALUE if an argument is NULL and DOCA_ERROR_BAD_STATE if the state does not
/// allow them. One thread at a time.
#ifndef DOCA_MMAP_H_
#define DOCA_MMAP_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_dev.h"
#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_mmap;

/// Called when an mmap is destroyed, so that its memory may be freed.
typedef void(doca_mmap_memrange_free_cb_t)(void *addr, size_t len, void *cookie);

/// Creates a stopped mmap without a range, whose rights are local reading and writing.
doca_error_t doca_mmap_create(struct doca_mmap **mmap);
/// Stops it if it is started, and frees it. DOCA_ERROR_NOT_PERMITTED while buffers or consumers
/// of it exist.
doca_error_t doca_mmap_destroy(struct doca_mmap *mmap);
/// Brings the memory into RAM and locks it there. DOCA_ERROR_NOT_PERMITTED without a range or
/// a device.
doca_error_t doca_mmap_start(struct doca_mmap *mmap);
/// Stops it, with its exports. Mmaps that other processes created from an export for PCI must be
/// destroyed first: they could access the memory longer. DOCA_ERROR_NOT_PERMITTED if it came of an
/// export for PCI, and while buffers of it exist; then it stays started. One that came of an export
/// for RDMA cannot be started again.
doca_error_t doca_mmap_stop(struct doca_mmap *mmap);

/// DOCA_ERROR_ALREADY_EXIST if it has the device.
doca_error_t doca_mmap_add_dev(struct doca_mmap *mmap, struct doca_dev *dev);
/// DOCA_ERROR_NOT_FOUND if it does not have the device.
doca_error_t doca_mmap_rm_dev(struct doca_mmap *mmap, struct doca_dev *dev);
/// `access`: flags of doca_access_flag. DOCA_ERROR_INVALID_VALUE for unknown ones.
doca_error_t doca_mmap_set_permissions(struct doca_mmap *mmap, uint32_t access);
/// Sets the memory, once; it must outlive the mmap. DOCA_ERROR_INVALID_VALUE if it is empty or
/// exceeds the address space, DOCA_ERROR_NOT_PERMITTED if memory was set before.
doca_error_t doca_mmap_set_memrange(struct doca_mmap *mmap, void *addr, size_t len);
/// Does the same for memory of a device, whose dma-buf has it from `dmabuf_offset` on: RDMA devices
/// are given the dma-buf. The mmap keeps a duplicate of the descriptor. doca_mmap_set_memrange() may
/// follow for the same range. DOCA_ERROR_INVALID_VALUE also for an invalid descriptor.
doca_error_t doca_mmap_set_dmabuf_memrange(struct doca_mmap *mmap, int dmabuf_fd, void *addr,
                                           uint64_t dmabuf_offset, size_t len);
/// Sets the key by which kernels name the memory to Ethernet queues, which want it in network order
/// (htobe32). Each start gives it another one. DOCA_ERROR_NOT_FOUND if the mmap has not the device,
/// DOCA_ERROR_BAD_STATE if it is not started, or was made of an export.
doca_error_t doca_mmap_get_mkey(struct doca_mmap *mmap, struct doca_dev *dev, uint32_t *mkey);
/// DOCA_ERROR_BAD_STATE if none was set.
doca_error_t doca_mmap_get_memrange(const struct doca_mmap *mmap, void **addr, size_t *len);
/// Describes the memory for the other side of PCI: a process of this machine that runs as the same
/// user, or as root. It gets the right that the permissions have: DOCA_ACCESS_FLAG_PCI_READ_ONLY or
/// _READ_WRITE. The program transmits the bytes, which are valid until the mmap is stopped or
/// destroyed; until then each call returns the same ones. Until the last exported mmap of the process
/// is stopped, Yama does not keep processes of the user from the memory of this one (PR_SET_PTRACER
/// of prctl(2), which replaces a setting of the program and then clears it). DOCA_ERROR_NOT_PERMITTED
/// if it is not started, came of an export or does not have those permissions, DOCA_ERROR_NOT_FOUND
/// if it does not have the device.
doca_error_t doca_mmap_export_pci(struct doca_mmap *mmap, const struct doca_dev *dev,
                                  const void **export_desc, size_t *export_desc_len);
/// Describes the memory for peers over the network of an RDMA device. They get the rights that the
/// permissions have: DOCA_ACCESS_FLAG_RDMA_READ, _RDMA_WRITE and _RDMA_ATOMIC. The program transmits
/// the bytes, which are valid until the mmap is stopped or destroyed; until then each call for a
/// device returns the same ones. DOCA_ERROR_NOT_PERMITTED if it is not started, came of an export or
/// does not have those permissions, DOCA_ERROR_NOT_FOUND if it does not have the device,
/// DOCA_ERROR_NOT_SUPPORTED for another kind of device.
doca_error_t doca_mmap_export_rdma(struct doca_mmap *mmap, const struct doca_dev *dev,
                                   const void **export_desc, size_t *export_desc_len);
/// Creates an mmap of memory that another process exported. It is started, and its range has the
/// addresses of that process: only devices access them, and those of an export for RDMA only the
/// remote side of RDMA tasks. `user_data`: as set by
/// doca_mmap_set_user_data(), may be NULL. DOCA_ERROR_INVALID_VALUE for bytes that are no export,
/// DOCA_ERROR_NOT_SUPPORTED for an export of several ranges, which other programs of the suite make,
/// DOCA_ERROR_NOT_FOUND if the process has ended.
doca_error_t doca_mmap_create_from_export(const union doca_data *user_data, const void *export_desc,
                                          size_t export_desc_len, struct doca_dev *dev,
                                          struct doca_mmap **mmap);
/// Sets the callback for the end of the mmap; NULL: none. It is called only if the mmap was started
/// after this call: otherwise no device has used the memory.
doca_error_t doca_mmap_set_free_cb(struct doca_mmap *mmap, doca_mmap_memrange_free_cb_t *callback,
                                   void *cookie);
doca_error_t doca_mmap_set_user_data(struct doca_mmap *mmap, union doca_data user_data);
doca_error_t doca_mmap_get_user_data(const struct doca_mmap *mmap, union doca_data *user_data);
/// The number of buffers of it that exist.
doca_error_t doca_mmap_get_num_bufs(const struct doca_mmap *mmap, uint32_t *num_bufs);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
