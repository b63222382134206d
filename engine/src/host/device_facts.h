/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of a device by its name: RDMA device, Cassini NIC or network interface. */
#pragma once

#include <net/if.h>

#include "base/pci.h"

/* "0000:17:00.0"; empty: on no PCI bus. A software device has its interface's. `root`: "" or a copied host's files. */
void device_pci_address(const char *root, const char *device, char ret[PCI_ADDRESS_MAX]);

/* The interface over a device, the first by name; an interface is its own. Empty: none. */
void device_netdev(const char *root, const char *device, char ret[IF_NAMESIZE]);

/* Whether the host's default route leaves by an interface, itself or below a bond, bridge or VLAN. */
bool netdev_has_default_route(const char *root, const char *netdev);
