/* SPDX-License-Identifier: Apache-2.0 */
#include "netdev.h"

#include <glob.h>
#include <ifaddrs.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>


/* One number from sysfs; speed reads as -1 or an error where a device has none. */
static long read_number(const char *name, const char *attribute, int base) {
	char path[96], text[32] = "";
	long n = -1;
	FILE *f;

	(void) snprintf(path, sizeof(path), "/sys/class/net/%s/%s", name, attribute);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fgets(text, sizeof(text), f))
		n = strtol(text, NULL, base);
	(void) fclose(f);
	return n;
}

/*
 * A veth says 10,000 Mb/s and a tap 10, which limit nothing: only what has hardware, itself or below it (a bond;
 * a VLAN of a bond), has a rate that can be a ceiling.
 */
static bool has_hardware(const char *name) {
	static const char *const places[] = { "device", "lower_*/device", "lower_*/lower_*/device" };
	bool found = false;

	for (size_t i = 0; i < ELEMENTSOF(places) && !found; i++) {
		char pattern[128];
		glob_t g;

		(void) snprintf(pattern, sizeof(pattern), "/sys/class/net/%s/%s", name, places[i]);
		if (glob(pattern, GLOB_NOSORT, NULL, &g) == 0) {
			found = true;
			globfree(&g);
		}
	}
	return found;
}

static const char *layer_of(long type) {
	switch (type) {
	case ARPHRD_ETHER:
		return "ethernet";
	case ARPHRD_INFINIBAND:
		return "infiniband";
	case ARPHRD_LOOPBACK:
		return "loopback";
	default:
		return "other";
	}
}

void netdev_read(const char *name, struct netdev *ret) {
	long mtu = read_number(name, "mtu", 10), speed = read_number(name, "speed", 10),
		flags = read_number(name, "flags", 16);

	*ret = (struct netdev) {
		.mtu = mtu > 0 ? (uint32_t) mtu : 0,
		.rate_gbit_s = speed > 0 && has_hardware(name) ? (double) speed / 1000 : 0, /* sysfs: Mb/s */
		.up = flags > 0 && (flags & IFF_UP),
	};
	(void) snprintf(ret->name, sizeof(ret->name), "%s", name);
	(void) snprintf(ret->layer, sizeof(ret->layer), "%s", layer_of(read_number(name, "type", 10)));
}

static bool same_address(const struct sockaddr *a, const struct sockaddr_storage *b) {
	const struct in6_addr *b6 = &((const struct sockaddr_in6 *) b)->sin6_addr;

	if (a->sa_family == AF_INET && b->ss_family == AF_INET)
		return memcmp(&((const struct sockaddr_in *) a)->sin_addr, &((const struct sockaddr_in *) b)->sin_addr,
			      4) == 0;
	if (a->sa_family == AF_INET && b->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(b6))
		return memcmp(&((const struct sockaddr_in *) a)->sin_addr, &b6->s6_addr[12], 4) == 0;
	if (a->sa_family == AF_INET6 && b->ss_family == AF_INET6)
		return memcmp(&((const struct sockaddr_in6 *) a)->sin6_addr, b6, 16) == 0;
	return false;
}

bool address_is_loopback(const struct sockaddr_storage *a) {
	if (a->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *) a;

		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	}
	if (a->ss_family == AF_INET6) {
		const struct in6_addr *in6 = &((const struct sockaddr_in6 *) a)->sin6_addr;

		return IN6_IS_ADDR_LOOPBACK(in6) || (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127);
	}
	return false;
}

int netdev_of_address(const struct sockaddr_storage *address, struct netdev *ret) {
	struct ifaddrs *list, *i;
	int r = -ENODEV;

	if (address_is_loopback(address)) {
		netdev_read("lo", ret);
		return 0;
	}
	if (getifaddrs(&list) < 0)
		return -errno;
	for (i = list; i && r < 0; i = i->ifa_next)
		if (i->ifa_addr && same_address(i->ifa_addr, address)) {
			netdev_read(i->ifa_name, ret);
			r = 0;
		}
	freeifaddrs(list);
	return r;
}
