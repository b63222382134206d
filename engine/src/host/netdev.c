/* SPDX-License-Identifier: Apache-2.0 */
#include "netdev.h"

#include <glob.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>

/* The first line of a file in an interface's folder of sysfs; empty where there is none. */
static void read_text(const char *folder, const char *attribute, char ret[32]) {
	char path[PATH_MAX];
	FILE *f;

	ret[0] = '\0';
	(void) snprintf(path, sizeof(path), "%s/%s", folder, attribute);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(ret, 32, f))
		ret[0] = '\0';
	(void) fclose(f);
}

/* One number; speed reads as -1 or an error where a device has none. */
static long read_number(const char *folder, const char *attribute, int base) {
	char text[32];

	read_text(folder, attribute, text);
	return text[0] ? strtol(text, NULL, base) : -1;
}

/* Each packet by another link, also of one flow (bonding(7)'s "balance-rr"). */
static bool spreads_packets(const char *folder) {
	char mode[32];

	read_text(folder, "bonding/mode", mode);
	return strncmp(mode, "balance-rr", strlen("balance-rr")) == 0;
}

/*
 * A veth says 10,000 Mb/s and a tap 10, which limit nothing: only what has hardware, itself or below it (a bond;
 * a VLAN of a bond), has a rate that can be a ceiling. In *ret_flow that of the fastest link, in Mb/s, or the
 * interface's own where links share a flow.
 */
static bool has_hardware(const char *folder, long speed, long *ret_flow) {
	static const char *const places[] = { "", "lower_*/", "lower_*/lower_*/" };
	bool found = false, spread = false;
	long fastest = 0;

	for (size_t i = 0; i < ELEMENTSOF(places) && !found; i++) {
		char pattern[PATH_MAX];
		glob_t g;

		(void) snprintf(pattern, sizeof(pattern), "%s/%sdevice", folder, places[i]);
		if (glob(pattern, GLOB_NOSORT, NULL, &g) != 0)
			continue;
		found = true;
		for (size_t k = 0; k < g.gl_pathc; k++) {
			*strrchr(g.gl_pathv[k], '/') = '\0';
			fastest = MAX(fastest, read_number(g.gl_pathv[k], "speed", 10));
			*strrchr(g.gl_pathv[k], '/') = '\0'; /* what lies over it */
			spread |= i > 0 && spreads_packets(g.gl_pathv[k]);
		}
		globfree(&g);
	}
	*ret_flow = fastest > 0 && !spread ? MIN(fastest, speed) : speed;
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

void netdev_read(const char *root, const char *name, struct netdev *ret) {
	char folder[PATH_MAX - 128];
	long mtu, speed, flags, flow;

	(void) snprintf(folder, sizeof(folder), "%s/sys/class/net/%s", root, name);
	mtu = read_number(folder, "mtu", 10);
	speed = read_number(folder, "speed", 10);
	flags = read_number(folder, "flags", 16);
	*ret = (struct netdev) { .mtu = mtu > 0 ? (uint32_t) mtu : 0, .up = flags > 0 && (flags & IFF_UP) };
	if (speed > 0 && has_hardware(folder, speed, &flow)) {
		ret->rate_gbit_s = (double) speed / 1000; /* sysfs: Mb/s */
		ret->flow_gbit_s = (double) flow / 1000;
	}
	(void) snprintf(ret->name, sizeof(ret->name), "%s", name);
	(void) snprintf(ret->layer, sizeof(ret->layer), "%s", layer_of(read_number(folder, "type", 10)));
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
		netdev_read("", "lo", ret);
		return 0;
	}
	if (getifaddrs(&list) < 0)
		return -errno;
	for (i = list; i && r < 0; i = i->ifa_next)
		if (i->ifa_addr && same_address(i->ifa_addr, address)) {
			netdev_read("", i->ifa_name, ret);
			r = 0;
		}
	freeifaddrs(list);
	return r;
}

int netdev_address(const char *name, struct sockaddr_storage *ret) {
	const struct sockaddr *found = NULL;
	struct ifaddrs *list, *i;

	if (getifaddrs(&list) < 0)
		return -errno;
	for (i = list; i; i = i->ifa_next)
		if (i->ifa_addr && streq(i->ifa_name, name) &&
		    (i->ifa_addr->sa_family == AF_INET ? !found || found->sa_family != AF_INET
		     : i->ifa_addr->sa_family == AF_INET6 && !found))
			found = i->ifa_addr;
	if (found) {
		memset(ret, 0, sizeof(*ret));
		memcpy(ret, found,
		       found->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	}
	freeifaddrs(list);
	return found ? 0 : -ENODEV;
}
