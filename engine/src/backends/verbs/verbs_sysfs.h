/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libibverbs does not tell: the kernel's own words about a device, from /sys/class/infiniband,
 * and what keeps it from opening.
 */
#pragma once

#include "verbs_device.h"

/* "up" for an active port, else the state's name in small letters. */
const char *verbs_port_state_name(enum ibv_port_state state);

/*
 * What to do about an open that failed with `error`, as far as this host shows it;
 * answers the error that it really was.
 */
int verbs_open_remedy(const struct ibv_device *device, int error, char *ret, size_t size);

/*
 * The names of all devices that the kernel has, whether libibverbs can use them or not: "mlx5_0, rxe0". Their number.
 */
unsigned verbs_sysfs_devices(char *ret, size_t size);

/* The interface of a port: that of its first GID which has one; empty: none. */
void verbs_sysfs_netdev(const char *device, unsigned port, char ret[IF_NAMESIZE]);

/* Whether a port runs at XDR, which the kernel names in its rate: "800 Gb/sec (4X XDR)". */
bool verbs_sysfs_is_xdr(const char *root, const char *device, unsigned port);

/* Whether an interface, such as ib0 of IPoIB, is of the same hardware as a device. */
bool verbs_sysfs_has_netdev(const char *device, const char *netdev);

/*
 * The interface of IPoIB of an InfiniBand port: `preferred` where it is one, else the first by name; empty: none.
 * `root`: "" or a copied host's files.
 */
void verbs_sysfs_ipoib(const char *root, const char *device, unsigned port, const char *preferred,
		       char ret[IF_NAMESIZE]);

/* The kernel's driver: "mlx5_core", "rdma_rxe"; empty: unknown. */
void verbs_sysfs_driver(const struct ibv_device *device, char ret[32]);

/* Asks an open device what it can do (verbs_capabilities.c). False: it does not say. */
bool verbs_capabilities(struct ibv_context *context, const struct ibv_device_attr *attr,
			struct device_capabilities *ret);
