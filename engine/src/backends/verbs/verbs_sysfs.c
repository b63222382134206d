/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs_sysfs.h"

#include <dirent.h>
#include <limits.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdio.h>

static const char class[] = "/sys/class/infiniband";

/* One line, without its end; empty where there is none. */
static _printf_(3, 4) void read_line(char *ret, size_t size, const char *format, ...) {
	char path[PATH_MAX];
	va_list ap;
	FILE *f;

	ret[0] = '\0';
	va_start(ap, format);
	(void) vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(ret, (int) size, f)) /* an empty entry of a GID table fails here, with EINVAL */
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	(void) fclose(f);
}

const char *verbs_port_state_name(enum ibv_port_state state) {
	static const char *const names[] = {
		[IBV_PORT_NOP] = "unknown", [IBV_PORT_DOWN] = "down", [IBV_PORT_INIT] = "init",
		[IBV_PORT_ARMED] = "armed", [IBV_PORT_ACTIVE] = "up", [IBV_PORT_ACTIVE_DEFER] = "deferred",
	};

	return (unsigned) state < ELEMENTSOF(names) ? names[state] : "unknown";
}

int verbs_open_remedy(const struct ibv_device *device, int error, char *ret, size_t size) {
	char node[sizeof(device->dev_name) + 32];

	(void) snprintf(node, sizeof(node), "/dev/infiniband/%s", device->dev_name);
	/* libibverbs hands on ENOENT for a file that it may not open, so the file is asked, too. */
	if (access(node, F_OK) < 0) {
		(void) snprintf(ret, size, "%s is missing: load ib_uverbs (modprobe ib_uverbs); "
				"in a container, pass /dev/infiniband in", node);
		return error;
	}
	if (error != EACCES && error != EPERM && access(node, R_OK | W_OK) == 0) {
		(void) snprintf(ret, size, "the kernel's log (dmesg) may say why");
		return error;
	}
	(void) snprintf(ret, size, "no permission on %s: join the group that owns it (often rdma), have udev open it, "
			"or run as root; in a container, allow the device", node);
	return EACCES;
}

unsigned verbs_sysfs_devices(char *ret, size_t size) {
	DIR *d = opendir(class);
	const struct dirent *e;
	unsigned n = 0;
	size_t at = 0;

	ret[0] = '\0';
	if (!d)
		return 0;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.') {
			if (at + strlen(e->d_name) + 3 < size)
				at += (size_t) snprintf(ret + at, size - at, "%s%s", n ? ", " : "", e->d_name);
			n++;
		}
	(void) closedir(d);
	return n;
}

void verbs_sysfs_netdev(const char *device, unsigned port, char ret[IF_NAMESIZE]) {
	read_line(ret, IF_NAMESIZE, "%s/%s/ports/%u/gid_attrs/ndevs/0", class, device, port);
	if (!ret[0]) /* a software device has no table while its interface is down, but it knows the interface */
		read_line(ret, IF_NAMESIZE, "%s/%s/parent", class, device);
}

bool verbs_sysfs_is_xdr(const char *root, const char *device, unsigned port) {
	char rate[64];

	read_line(rate, sizeof(rate), "%s%s/%s/ports/%u/rate", root, class, device, port);
	return strstr(rate, " XDR)");
}

bool verbs_sysfs_has_netdev(const char *device, const char *netdev) {
	char path[PATH_MAX];

	if (!netdev[0])
		return false;
	(void) snprintf(path, sizeof(path), "%s/%s/device/net/%s", class, device, netdev);
	return access(path, F_OK) == 0;
}

/* Ports of one function have their interfaces in one folder; dev_port tells them apart, from 0. */
static bool is_ipoib(const char *folder, const char *name, unsigned port) {
	char type[16], number[16];

	read_line(type, sizeof(type), "%s/%s/type", folder, name);
	read_line(number, sizeof(number), "%s/%s/dev_port", folder, name);
	return strtoul(type, NULL, 10) == ARPHRD_INFINIBAND && number[0] && strtoul(number, NULL, 10) + 1 == port;
}

void verbs_sysfs_ipoib(const char *root, const char *device, unsigned port, const char *preferred,
		       char ret[IF_NAMESIZE]) {
	char folder[PATH_MAX];
	const struct dirent *e;
	DIR *d;

	ret[0] = '\0';
	(void) snprintf(folder, sizeof(folder), "%s%s/%s/device/net", root, class, device);
	d = opendir(folder);
	while (d && (e = readdir(d))) {
		if (strlen(e->d_name) >= IF_NAMESIZE || !is_ipoib(folder, e->d_name, port))
			continue;
		if (!ret[0] || streq(e->d_name, preferred) || (!streq(ret, preferred) && strcmp(e->d_name, ret) < 0))
			(void) copy_string(ret, IF_NAMESIZE, e->d_name);
	}
	if (d)
		(void) closedir(d);
}

void verbs_sysfs_driver(const struct ibv_device *device, char ret[32]) {
	const char *name = ibv_get_device_name((struct ibv_device *) (uintptr_t) device), *last;
	char path[PATH_MAX], target[PATH_MAX], parent[IF_NAMESIZE];
	ssize_t n;

	ret[0] = '\0';
	(void) snprintf(path, sizeof(path), "%s/%s/device/driver", class, name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n > 0) {
		target[n] = '\0';
		last = strrchr(target, '/');
		(void) snprintf(ret, 32, "%.31s", last ? last + 1 : target);
		return;
	}
	/* No hardware below, but an interface: one of the kernel's two software devices, told by what they speak. */
	read_line(parent, sizeof(parent), "%s/%s/parent", class, name);
	if (parent[0])
		(void) snprintf(ret, 32, "%s", device->transport_type == IBV_TRANSPORT_IWARP ? "siw" : "rdma_rxe");
}
