/// Devices: every RDMA device of this machine, and the processors as devices with a PCI address
/// each, so that a program finds one without a card.
///
/// The environment variable OFFLOAD_DOCA_DEVICES lists the latter, separated by commas. A device is
/// an address, followed by those of its representors, each after a slash:
/// "03:00.0/b1:00.0,b1:00.0", the default, is a DPU's function that represents one of the host, and
/// that function. An equals sign and the name of a network interface after the device's own address
/// give it that interface, for Ethernet: "03:00.0=eth0/b1:00.0". All calls may come from any thread, but not for the same object at once.
#ifndef DOCA_DEV_H_
#define DOCA_DEV_H_

#include <stdint.h>

#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// The lengths of texts, with the byte that ends them.
#define DOCA_DEVINFO_PCI_ADDR_SIZE 13
#define DOCA_DEVINFO_IFACE_NAME_SIZE 256
#define DOCA_DEVINFO_IBDEV_NAME_SIZE 64
#define DOCA_DEVINFO_MAC_ADDR_SIZE 6  ///< bytes
#define DOCA_DEVINFO_REP_PCI_ADDR_SIZE 13
#define DOCA_DEVINFO_REP_VUID_SIZE 128
/// The bytes of addresses.
#define DOCA_DEVINFO_IPV4_ADDR_SIZE 4
#define DOCA_DEVINFO_IPV6_ADDR_SIZE 16

struct doca_devinfo;
struct doca_devinfo_rep;
struct doca_dev;
struct doca_dev_rep;

/// The representors that doca_devinfo_rep_create_list() returns.
enum doca_devinfo_rep_filter {
  DOCA_DEVINFO_REP_FILTER_ALL = 0,
  DOCA_DEVINFO_REP_FILTER_NET = 1 << 1,
  DOCA_DEVINFO_REP_FILTER_EMULATED = 1 << 2
};

/// Lists the devices. A device that is opened stays valid without the list.
/// DOCA_ERROR_INVALID_VALUE if an argument is NULL, or OFFLOAD_DOCA_DEVICES is malformed.
doca_error_t doca_devinfo_create_list(struct doca_devinfo ***dev_list, uint32_t *nb_devs);
/// DOCA_ERROR_INVALID_VALUE if it is NULL.
doca_error_t doca_devinfo_destroy_list(struct doca_devinfo **dev_list);

/// Opens a device of a list. DOCA_ERROR_INVALID_VALUE if an argument is NULL.
doca_error_t doca_dev_open(struct doca_devinfo *devinfo, struct doca_dev **dev);
/// Closes a device; NULL is allowed and does nothing. UMEMs and UARs of it stay valid until they are
/// destroyed. DOCA_ERROR_IN_USE while an mmap or a context uses it.
doca_error_t doca_dev_close(struct doca_dev *dev);
/// Returns the description of an open device, which is valid until the device is closed; NULL for
/// NULL.
struct doca_devinfo *doca_dev_as_devinfo(const struct doca_dev *dev);

/// All of these return DOCA_ERROR_INVALID_VALUE if an argument is NULL or a text has no room.

/// Sets `is_equal` to 1 if the device has the address, which may lack the domain.
/// DOCA_ERROR_INVALID_VALUE if it is no address.
doca_error_t doca_devinfo_is_equal_pci_addr(const struct doca_devinfo *devinfo, const char *pci_addr,
                                            uint8_t *is_equal);
/// Writes "0000:03:00.0". DOCA_ERROR_NOT_FOUND if it has none.
doca_error_t doca_devinfo_get_pci_addr_str(const struct doca_devinfo *devinfo, char *pci_addr);
/// DOCA_ERROR_NOT_SUPPORTED if it is no function of a card.
doca_error_t doca_devinfo_get_pci_func_type(const struct doca_devinfo *devinfo,
                                            enum doca_pci_func_type *type);
/// DOCA_ERROR_NOT_FOUND if it has no network interface.
doca_error_t doca_devinfo_get_iface_name(const struct doca_devinfo *devinfo, char *name,
                                         uint32_t size);
/// A host device has the name of its network interface. DOCA_ERROR_NOT_FOUND if it is no RDMA device
/// and has none.
doca_error_t doca_devinfo_get_ibdev_name(const struct doca_devinfo *devinfo, char *name,
                                         uint32_t size);
/// Writes the 6 bytes of the address of its network interface. `size`: of `mac_addr`, at least as
/// many. DOCA_ERROR_NOT_FOUND if it has none, or this network namespace has not.
doca_error_t doca_devinfo_get_mac_addr(const struct doca_devinfo *devinfo, uint8_t *mac_addr,
                                       uint32_t size);
/// DOCA_ERROR_NOT_SUPPORTED: no device here knows the index of its sub-function.
doca_error_t doca_devinfo_get_sf_index(const struct doca_devinfo *devinfo, uint32_t *sf_index);

/// Lists the representors of a device. `filter`: values of doca_devinfo_rep_filter. There are none
/// of emulated functions. DOCA_ERROR_NOT_SUPPORTED if the device has none,
/// DOCA_ERROR_INVALID_VALUE for another filter.
doca_error_t doca_devinfo_rep_create_list(struct doca_dev *dev, int filter,
                                          struct doca_devinfo_rep ***dev_list_rep,
                                          uint32_t *nb_devs_rep);
doca_error_t doca_devinfo_rep_destroy_list(struct doca_devinfo_rep **dev_list_rep);
/// Sets `filter_net_supported` to 1 if the device has representors of network functions.
doca_error_t doca_devinfo_rep_cap_is_filter_net_supported(const struct doca_devinfo *devinfo,
                                                          uint8_t *filter_net_supported);
doca_error_t doca_devinfo_rep_is_equal_pci_addr(const struct doca_devinfo_rep *devinfo_rep,
                                                const char *pci_addr, uint8_t *is_equal);
doca_error_t doca_devinfo_rep_get_pci_addr_str(const struct doca_devinfo_rep *devinfo_rep,
                                               char *pci_addr);
/// Writes a text that no other representor of this machine has.
doca_error_t doca_devinfo_rep_get_vuid(const struct doca_devinfo_rep *devinfo_rep, char *vuid,
                                       uint32_t size);
doca_error_t doca_dev_rep_open(struct doca_devinfo_rep *devinfo_rep, struct doca_dev_rep **dev_rep);
/// NULL is allowed and does nothing.
doca_error_t doca_dev_rep_close(struct doca_dev_rep *dev_rep);
struct doca_devinfo_rep *doca_dev_rep_as_devinfo(const struct doca_dev_rep *dev_rep);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
