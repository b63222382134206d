/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of a network interface. */
#pragma once

#include <net/if.h>
#include <sys/socket.h>

#include "base/util.h"

struct netdev {
	char name[IF_NAMESIZE];
	char layer[16];         /* ethernet, infiniband, loopback, other */
	uint32_t mtu;           /* bytes; 0: unknown */
	double rate_gbit_s;     /* of all its links together; 0: unknown */
	double flow_gbit_s;     /* of one flow: a bond sends each by one of its links; 0: unknown */
	bool up;
};

/* True where the address is of this host's loopback, IPv4-mapped included. */
bool address_is_loopback(const struct sockaddr_storage *a);

/* The interface that has an address (127.0.0.0/8 is all lo's). -ENODEV. */
int netdev_of_address(const struct sockaddr_storage *address, struct netdev *ret);

/* The first address of an interface, of IPv4 before IPv6. -ENODEV: it has none. */
int netdev_address(const char *name, struct sockaddr_storage *ret);

/* Reads the facts of an interface by name; what cannot be read stays unknown. `root`: "" or a copied host's files. */
void netdev_read(const char *root, const char *name, struct netdev *ret);

/* What so many flows can carry at once, in Gb/s; 0: unknown. */
static inline double netdev_rate(const struct netdev *n, uint32_t flows) {
	return MIN(n->rate_gbit_s, n->flow_gbit_s * flows);
}
