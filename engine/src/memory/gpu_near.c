/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPU is meant. Near is counted in steps of PCI: payload that a network device reads from a GPU goes up to the
 * first bridge, switch or root port that has both below it. The more of the device's way a GPU shares, the nearer it
 * is; where they share nothing, one on the device's NUMA node is.
 */
#include <glob.h>
#include <limits.h>
#include <stdio.h>

#include "gpu.h"
#include "base/message.h"
#include "host/device_facts.h"

/* The way to a PCI function through sysfs; empty: none. */
static void read_way(const char *root, const char *address, char ret[PATH_MAX]) {
	char path[PATH_MAX];

	(void) snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s", root, address);
	if (!address[0] || !realpath(path, ret))
		ret[0] = '\0';
}

static int read_node(const char *root, const char *address) {
	char path[PATH_MAX];
	int node = -1;
	FILE *f;

	(void) snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/numa_node", root, address);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	(void) fclose(f);
	return node;
}

/* Buses and bridges that both ways have, from the top. */
static unsigned shared_steps(const char *a, const char *b) {
	unsigned n = 0;

	while (*a && *b) {
		size_t length = strcspn(++a, "/");
		char name[PCI_ADDRESS_MAX];

		if (length != strcspn(++b, "/") || strncmp(a, b, length) != 0)
			break;
		(void) snprintf(name, sizeof(name), "%.*s", (int) length, a);
		/* "pci0000:3a" is a root of the bus; what lies above it is no way of PCI's. */
		n += strncmp(name, "pci", 3) == 0 || is_pci_address(name);
		a += length;
		b += length;
	}
	return n;
}

/* Larger is nearer. A device on no PCI bus has all GPUs equally near. */
static unsigned nearness(const char *root, const char *nic, const char *gpu) {
	char way[PATH_MAX], its[PATH_MAX];
	int node = read_node(root, nic);

	read_way(root, nic, way);
	read_way(root, gpu, its);
	if (!way[0] || !its[0])
		return 0;
	return 2 * shared_steps(way, its) + (node >= 0 && node == read_node(root, gpu));
}

static bool read_number(const char *root, const char *address, const char *name, unsigned *ret) {
	char path[PATH_MAX];
	bool good;
	FILE *f;

	(void) snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/%s", root, address, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	good = fscanf(f, "%x", ret) == 1;
	(void) fclose(f);
	return good;
}

/* What a PCI function is as memory: "cuda", "rocm" or "ze"; NULL: no GPU, or its driver is not loaded. */
static const char *kind_of(const char *root, const char *address) {
	/* Display controllers and accelerators (PCI Code and ID Assignment Specification), by maker and driver. */
	enum { CLASS_DISPLAY = 0x03, CLASS_ACCELERATOR = 0x12 };
	static const struct {
		unsigned vendor;
		const char *driver, *kind;
	} known[] = { { 0x10de, "nvidia", "cuda" }, { 0x1002, "amdgpu", "rocm" }, { 0x8086, "i915", "ze" },
		      { 0x8086, "xe", "ze" } };
	char path[PATH_MAX], target[PATH_MAX];
	unsigned class, vendor;

	if (!read_number(root, address, "class", &class) || !read_number(root, address, "vendor", &vendor) ||
	    (class >> 16 != CLASS_DISPLAY && class >> 16 != CLASS_ACCELERATOR))
		return NULL;
	(void) snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/driver", root, address);
	if (!realpath(path, target))
		return NULL;
	for (size_t i = 0; i < ELEMENTSOF(known); i++)
		if (known[i].vendor == vendor && streq(strrchr(target, '/') + 1, known[i].driver))
			return known[i].kind;
	return NULL;
}

/* By nearness, then by address: glob() sorts them so. */
static void add_sorted(struct gpu_found *list, size_t n, const struct gpu_found *found) {
	for (; n > 0 && list[n - 1].nearness < found->nearness; n--)
		list[n] = list[n - 1];
	list[n] = *found;
}

size_t gpu_list(const char *root, const char *device, struct gpu_found ret[GPUS_MAX]) {
	char path[PATH_MAX], nic[PCI_ADDRESS_MAX];
	size_t n = 0;
	glob_t all;

	device_pci_address(root, device, nic);
	(void) snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/*", root);
	if (glob(path, 0, NULL, &all) != 0)
		return 0;
	for (size_t i = 0; i < all.gl_pathc && n < GPUS_MAX; i++) {
		struct gpu_found one = { .kind = NULL };

		if (pci_address_read(strrchr(all.gl_pathv[i], '/') + 1, one.address))
			one.kind = kind_of(root, one.address);
		if (!one.kind)
			continue;
		one.nearness = nearness(root, nic, one.address);
		add_sorted(ret, n++, &one);
	}
	globfree(&all);
	return n;
}

struct gpus {
	uint32_t count;
	char address[GPUS_MAX][PCI_ADDRESS_MAX];
};

static int list_gpus(const struct gpu_runtime *r, struct gpus *ret) {
	int e = r->start(&ret->count);

	ret->count = MIN(ret->count, (uint32_t) GPUS_MAX);
	for (uint32_t i = 0; e == 0 && i < ret->count; i++)
		gpu_address(r, i, ret->address[i]);
	return e;
}

/* Marks those that are nearest to a network device; answers how many. */
static uint32_t mark_nearest(const char *root, const char *device, const struct gpus *all, bool ret[GPUS_MAX]) {
	char nic[PCI_ADDRESS_MAX];
	unsigned best = 0;
	uint32_t n = 0;

	device_pci_address(root, device, nic);
	for (uint32_t i = 0; i < all->count; i++) {
		const unsigned is = nearness(root, nic, all->address[i]);

		if (is > best) {
			memset(ret, 0, i * sizeof(*ret));
			n = 0;
			best = is;
		}
		ret[i] = is == best;
		n += ret[i];
	}
	return n;
}

static uint32_t choose_near(const char *root, const struct gpus *all, const struct gpu_seat *seat) {
	bool mine[GPUS_MAX] = { false }, others[GPUS_MAX] = { false };
	const uint32_t n = mark_nearest(root, seat->devices[seat->own], all, mine);
	uint32_t turn = 0, at = 0;

	for (unsigned i = 0; i < seat->own; i++) {
		(void) mark_nearest(root, seat->devices[i], all, others);
		turn += memcmp(mine, others, all->count * sizeof(*mine)) == 0;
	}
	turn = (turn * seat->slots + seat->slot) % n;
	for (;; at++)
		if (mine[at] && turn-- == 0)
			return at;
}

static int no_such_address(const struct gpu_runtime *r, const char *address, const struct gpus *all) {
	char list[256] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < all->count && used + PCI_ADDRESS_MAX + 2 < sizeof(list); i++)
		used += (size_t) snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					  all->address[i][0] ? all->address[i] : "(unknown)");
	return failure(-ENODEV, EXIT_HOST, "--memory %s:%s: this host has no %s GPU at that PCI address; it has %s",
		       r->name, address, r->maker, list);
}

/* Without addresses each GPU would look as near as any other. */
static int check_addresses(const char *root, const struct gpu_runtime *r, const struct gpus *all, const char *device) {
	char nic[PCI_ADDRESS_MAX];

	device_pci_address(root, device, nic);
	for (uint32_t i = 0; nic[0] && i < all->count; i++)
		if (!all->address[i][0])
			return failure(-EOPNOTSUPP, EXIT_HOST, "--memory %s:near: the runtime does not say where %s:%u "
				       "is on the PCI bus; name a GPU by its number", r->name, r->name, i);
	return 0;
}

int gpu_find_in(const char *root, const struct memory_kind *kind, const struct gpu_seat *seat,
		struct memory_kind *ret) {
	const struct gpu_runtime *r;
	struct gpus all = { 0 };
	uint32_t at = 0;
	int e;

	if (!kind->near && !kind->address[0]) {
		*ret = *kind;
		return 0;
	}
	r = gpu_runtime_of(kind->type);
	e = list_gpus(r, &all);
	if (e < 0)
		return e;
	if (kind->near) {
		e = check_addresses(root, r, &all, seat->devices[seat->own]);
		if (e < 0)
			return e;
		at = choose_near(root, &all, seat);
	}
	while (!kind->near && at < all.count && !streq(all.address[at], kind->address))
		at++;
	if (at == all.count)
		return no_such_address(r, kind->address, &all);
	*ret = (struct memory_kind) { .type = kind->type, .ordinal = at };
	return 0;
}

int gpu_find(const struct memory_kind *kind, const struct gpu_seat *seat, struct memory_kind *ret) {
	return gpu_find_in("", kind, seat, ret);
}
