/* SPDX-License-Identifier: Apache-2.0 */
#include "device_facts.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/message.h"

static bool is_name(const char *device) {
	return device[0] && device[0] != '.' && !strchr(device, '/');
}

/* The last name of the path that matches first. */
static bool first_match(const char *pattern, char *ret, size_t size) {
	bool found;
	glob_t g;

	ret[0] = '\0';
	if (glob(pattern, 0, NULL, &g) != 0)
		return false;
	found = copy_string(ret, size, strrchr(g.gl_pathv[0], '/') + 1) == 0;
	globfree(&g);
	return found;
}

static void read_parent(const char *root, const char *device, char ret[IF_NAMESIZE]) {
	char path[PATH_MAX];
	FILE *f;

	ret[0] = '\0';
	(void) snprintf(path, sizeof(path), "%s/sys/class/infiniband/%s/parent", root, device);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(ret, IF_NAMESIZE, f))
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	(void) fclose(f);
}

static bool pci_of(const char *root, const char *class, const char *name, char ret[PCI_ADDRESS_MAX]) {
	char path[PATH_MAX], target[PATH_MAX];
	const char *last;

	(void) snprintf(path, sizeof(path), "%s/sys/class/%s/%s/device", root, class, name);
	last = realpath(path, target) ? strrchr(target, '/') : NULL;
	if (!last || !is_pci_address(last + 1))
		return false;
	return copy_string(ret, PCI_ADDRESS_MAX, last + 1) == 0;
}

void device_pci_address(const char *root, const char *device, char ret[PCI_ADDRESS_MAX]) {
	static const char *const classes[] = { "infiniband", "cxi", "net" };
	char parent[IF_NAMESIZE];

	ret[0] = '\0';
	if (!is_name(device))
		return;
	for (size_t i = 0; i < ELEMENTSOF(classes); i++)
		if (pci_of(root, classes[i], device, ret))
			return;
	read_parent(root, device, parent);
	if (is_name(parent))
		(void) pci_of(root, "net", parent, ret);
}

void device_netdev(const char *root, const char *device, char ret[IF_NAMESIZE]) {
	static const char *const places[] = { "infiniband", "cxi" };
	char path[PATH_MAX];

	ret[0] = '\0';
	if (!is_name(device))
		return;
	(void) snprintf(path, sizeof(path), "%s/sys/class/net/%s", root, device);
	if (first_match(path, ret, IF_NAMESIZE))
		return;
	for (size_t i = 0; i < ELEMENTSOF(places); i++) {
		(void) snprintf(path, sizeof(path), "%s/sys/class/%s/%s/device/net/*", root, places[i], device);
		if (first_match(path, ret, IF_NAMESIZE))
			return;
	}
	read_parent(root, device, ret);
}

/* Whether `upper` is the interface, or lies over it: bond0, or bond0.7. */
static bool is_over(const char *root, const char *upper, const char *netdev) {
	static const char *const places[] = { "lower_", "lower_*/lower_" };
	char path[PATH_MAX], name[IF_NAMESIZE + 8];

	if (streq(upper, netdev))
		return true;
	for (size_t i = 0; i < ELEMENTSOF(places); i++) {
		(void) snprintf(path, sizeof(path), "%s/sys/class/net/%s/%s%s", root, upper, places[i], netdev);
		if (first_match(path, name, sizeof(name)))
			return true;
	}
	return false;
}

/* A line of /proc/net/route or ipv6_route: the interface of a default route that is up; else NULL. */
static char *default_route_of(char *line, bool v6) {
	char *word[11], *rest = line, *save = NULL;
	size_t n = 0;

	for (char *w; n < ELEMENTSOF(word) && (w = strtok_r(rest, " \t\n", &save)); rest = NULL)
		word[n++] = w;
	if (v6) /* destination, length, ..., flags, interface; lo's own entries are no way out */
		return n == 10 && strspn(word[0], "0") == 32 && streq(word[1], "00") && !streq(word[9], "lo")
		       ? word[9] : NULL;
	return n >= 8 && streq(word[1], "00000000") && streq(word[7], "00000000") ? word[0] : NULL;
}

bool netdev_has_default_route(const char *root, const char *netdev) {
	static const char *const files[] = { "route", "ipv6_route" };
	char path[PATH_MAX], line[512];
	bool found = false;

	if (!is_name(netdev))
		return false;
	for (size_t i = 0; i < ELEMENTSOF(files) && !found; i++) {
		FILE *f;

		(void) snprintf(path, sizeof(path), "%s/proc/net/%s", root, files[i]);
		f = fopen(path, "re");
		while (f && !found && fgets(line, sizeof(line), f)) {
			const char *way = default_route_of(line, i == 1);

			found = way && is_over(root, way, netdev);
		}
		if (f)
			(void) fclose(f);
	}
	return found;
}
