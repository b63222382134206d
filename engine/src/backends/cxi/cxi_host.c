/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host needs before CXI works, from the bottom up: NIC, driver, device file, libcxi,
 * libfabric's provider, a service.
 */
#include "cxi.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

/* Cassini 1 and 2: PCI vendor and device of the kernel driver's table (cxi_ss1). */
static const struct {
	unsigned vendor, device;
} nics[] = { { 0x17db, 0x0501 }, { 0x1590, 0x0371 } };

static unsigned read_number(const char *folder, const char *name, const char *file) {
	char path[PATH_MAX], text[32];
	unsigned n = 0;
	FILE *f;

	(void) snprintf(path, sizeof(path), "%s/%s/%s", folder, name, file);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(text, sizeof(text), f))
		n = (unsigned) strtoul(text, NULL, 16);
	(void) fclose(f);
	return n;
}

static bool find_nic(const char *root) {
	char folder[PATH_MAX];
	bool found = false;
	struct dirent *e;
	DIR *d;

	(void) snprintf(folder, sizeof(folder), "%s/sys/bus/pci/devices", root);
	d = opendir(folder);
	while (d && !found && (e = readdir(d)))
		for (size_t i = 0; i < ELEMENTSOF(nics); i++)
			found |= read_number(folder, e->d_name, "vendor") == nics[i].vendor &&
				 read_number(folder, e->d_name, "device") == nics[i].device;
	if (d)
		(void) closedir(d);
	return found;
}

/* The first by name, so that two looks find the same. */
static bool find_device(const char *root, char *ret, size_t size) {
	char folder[PATH_MAX];
	struct dirent *e;
	DIR *d;

	ret[0] = '\0';
	(void) snprintf(folder, sizeof(folder), "%s/sys/class/cxi", root);
	d = opendir(folder);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && (!ret[0] || strcmp(e->d_name, ret) < 0))
			(void) copy_string(ret, size, e->d_name); /* a longer name is none of the driver's */
	if (d)
		(void) closedir(d);
	return ret[0] != '\0';
}

void cxi_host_look(const char *root, struct cxi_host *ret) {
	void *library = dlopen("libcxi.so.1", RTLD_LAZY | RTLD_LOCAL);
	char path[PATH_MAX];

	*ret = (struct cxi_host) { .nic = find_nic(root), .library = library != NULL };
	ret->driver = find_device(root, ret->device, sizeof(ret->device));
	(void) snprintf(path, sizeof(path), "%s/dev/%s", root, ret->device);
	ret->node = ret->driver && access(path, F_OK) == 0;
	ret->permitted = ret->node && access(path, R_OK | W_OK) == 0;
	if (library)
		(void) dlclose(library);
}

static void say(char *ret, size_t *n, const char *what) {
	int more = snprintf(ret + *n, CXI_MISSING_MAX - *n, "%s%s", *n ? "; " : "", what);

	*n = MIN(*n + (size_t) MAX(more, 0), (size_t) CXI_MISSING_MAX - 1);
}

void cxi_host_missing(const struct cxi_host *h, char ret[CXI_MISSING_MAX]) {
	char text[128];
	size_t n = 0;

	ret[0] = '\0';
	if (!h->nic && !h->driver)
		say(ret, &n, "no Slingshot NIC on the PCI bus (17db:0501, 1590:0371)");
	else if (!h->driver)
		say(ret, &n, "no driver: /sys/class/cxi is empty (modprobe cxi_ss1; see the kernel's log)");
	else if (!h->node || !h->permitted) {
		(void) snprintf(text, sizeof(text),
				h->node ? "no permission on /dev/%s (udev rules of the cxi driver's package)"
					: "no device file /dev/%s (modprobe cxi_user)", h->device);
		say(ret, &n, text);
	}
	if (!h->library)
		say(ret, &n, "no libcxi.so.1 (package libcxi)");
	if (!h->provider)
		say(ret, &n, "this libfabric has no cxi provider (`fi_info -l` lists them; "
		    "install the one of the Slingshot host software, or build one with --enable-cxi)");
	if (n == 0)
		say(ret, &n, "driver, device file, libcxi and provider are there, but the provider offers no device; "
		    "there is no enabled service for this user (`cxi_service list`), "
		    "or FI_PROVIDER or FI_CXI_DEVICE_NAME excludes it");
}
