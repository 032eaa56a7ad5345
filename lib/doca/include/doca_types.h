/// Types that all groups of calls share.
#ifndef DOCA_TYPES_H_
#define DOCA_TYPES_H_

#include <stddef.h>
#include <stdint.h>
// Programs for DOCA use these without including them.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "doca_build_config.h"

/// Data of the program that calls carry back to it unchanged.
union doca_data {
  void *ptr;
  uint64_t u64;
};

/// A number whose bytes are in the order of the network.
typedef uint32_t doca_be32_t;

/// A file descriptor that becomes readable when there is work.
typedef int doca_event_handle_t;
#define doca_event_invalid_handle (-1)
/// Bytes of an address of an RDMA port.
#define DOCA_GID_BYTE_LENGTH 16

/// Rights to the memory of an mmap. Local rights are those of this process; PCI rights are those of
/// the other side of PCI, which is another process of this machine here.
enum doca_access_flag {
  DOCA_ACCESS_FLAG_LOCAL_READ_ONLY = 0,
  DOCA_ACCESS_FLAG_LOCAL_READ_WRITE = 1 << 0,
  DOCA_ACCESS_FLAG_RDMA_READ = 1 << 1,
  DOCA_ACCESS_FLAG_RDMA_WRITE = 1 << 2,
  DOCA_ACCESS_FLAG_RDMA_ATOMIC = 1 << 3,
  DOCA_ACCESS_FLAG_PCI_READ_ONLY = 1 << 4,
  DOCA_ACCESS_FLAG_PCI_READ_WRITE = 1 << 5,
  DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING = 1 << 6
};

/// The kind of a function of a card.
enum doca_pci_func_type {
  DOCA_PCI_FUNC_TYPE_PF = 0,
  DOCA_PCI_FUNC_TYPE_VF = 1,
  DOCA_PCI_FUNC_TYPE_SF = 2
};

#endif
