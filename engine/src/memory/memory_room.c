/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_room.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/message.h"
#include "memory_kernel.h"

static uint64_t limit;                  /* 0: none; set before there are threads */
static _Atomic uint64_t taken;

void room_limit(uint64_t bytes) {
	limit = bytes;
}

int room_take(uint64_t length) {
	uint64_t before = atomic_fetch_add(&taken, length);

	if (limit == 0 || (length <= limit && before <= limit - length))
		return 0;
	room_give(length);
	return failure(-ENOMEM, EXIT_HOST,
		       "the job's buffers take more than the %llu KiB of 'perch serve --max-memory'; "
		       "lower --footprint, --size, --outstanding, --batch or --threads",
		       (unsigned long long) (limit >> 10));
}

void room_give(uint64_t length) {
	atomic_fetch_sub(&taken, length);
}

static int compare(uint64_t length, uint64_t free, const char *what, const char *name) {
	if (length <= free)
		return 0;
	return failure(-ENOMEM, EXIT_HOST, "the buffers take %llu MiB and %s%s has %llu MiB available; "
		       "lower --footprint, --size, --outstanding, --batch, --stride or --threads",
		       (unsigned long long) (length >> 20), what, name, (unsigned long long) (free >> 20));
}

/* Kernels before 3.14 do not say: then mmap() decides alone. */
static int check_host(const char *root, uint64_t length) {
	char directory[PATH_MAX];
	uint64_t kib = 0;

	if (snprintf(directory, sizeof(directory), "%s/proc", root) >= (int) sizeof(directory) ||
	    !kernel_entry(directory, "meminfo", "MemAvailable:", &kib))
		return 0;
	return compare(length, kib << 10, "this host", "");
}

/* Nodes do not say what is available: as the kernel counts it, without its reserves (si_mem_available()). */
static int check_nodes(const char *root, uint64_t length) {
	static const char *const keys[] = { "MemFree:", "Active(file):", "Inactive(file):", "SReclaimable:" };
	char directory[PATH_MAX], name[NODES_TEXT];
	struct nodes nodes;
	uint64_t kib = 0;
	bool known = false;

	if (!nodes_bound(&nodes))
		return 0;
	for (unsigned node = 0; node < NODES_MAX; node++) {
		if (!nodes_have(&nodes, node) ||
		    snprintf(directory, sizeof(directory), "%s/sys/devices/system/node/node%u", root, node) >=
		    (int) sizeof(directory))
			continue;
		for (size_t i = 0; i < ELEMENTSOF(keys); i++)
			known |= kernel_entry(directory, "meminfo", keys[i], &kib);
	}
	nodes_format(&nodes, name);
	return known ? compare(length, kib << 10, name, "") : 0;
}

/* Both versions have it where systemd and container runtimes mount it. */
struct hierarchy {
	const char *mount, *limit, *usage, *reclaimable[3];
};

static const struct hierarchy version_2 = { "/sys/fs/cgroup", "memory.max", "memory.current",
					    { "active_file", "inactive_file", "slab_reclaimable" } };
static const struct hierarchy version_1 = { "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
					    { "total_active_file", "total_inactive_file", NULL } };

/* Without a limit its file has "max", or is not there. What files take is given up for buffers. */
static int check_group(const struct hierarchy *h, const char *root, const char *group, uint64_t length) {
	uint64_t limit_bytes = 0, usage = 0, reclaimable = 0;
	char directory[PATH_MAX];

	if (snprintf(directory, sizeof(directory), "%s%s%s", root, h->mount, group) >= (int) sizeof(directory) ||
	    !kernel_number(directory, h->limit, &limit_bytes) || !kernel_number(directory, h->usage, &usage))
		return 0;
	for (size_t i = 0; i < ELEMENTSOF(h->reclaimable) && h->reclaimable[i]; i++)
		(void) kernel_entry(directory, "memory.stat", h->reclaimable[i], &reclaimable);
	usage -= MIN(reclaimable, usage);
	return compare(length, limit_bytes - MIN(usage, limit_bytes), "control group ", group[0] ? group : "/");
}

/*
 * The limits of those above hold, too. In a container that sees its own part of the tree alone, the path may be the
 * host's: then only the uppermost is there, which is the container's.
 */
static int check_line(const char *root, char *line, uint64_t length) {
	char *controllers = strchr(line, ':'), *group = controllers ? strchr(++controllers, ':') : NULL;
	const struct hierarchy *h;
	int e = 0;

	if (!group)
		return 0;
	*group++ = '\0';
	group[strcspn(group, "\n")] = '\0';
	if (controllers[0] && !streq(controllers, "memory"))
		return 0;
	h = controllers[0] ? &version_1 : &version_2;
	for (char *end; e == 0 && (end = strrchr(group, '/')); *end = '\0')
		if (end[1])
			e = check_group(h, root, group, length);
	return e < 0 ? e : check_group(h, root, "", length);
}

static int check_groups(const char *root, uint64_t length) {
	char path[PATH_MAX], line[PATH_MAX];
	FILE *f = NULL;
	int e = 0;

	if (snprintf(path, sizeof(path), "%s/proc/self/cgroup", root) < (int) sizeof(path))
		f = fopen(path, "re");
	while (f && e == 0 && fgets(line, sizeof(line), f))
		e = check_line(root, line, length);
	if (f)
		(void) fclose(f);
	return e;
}

int room_check(const char *root, uint64_t length) {
	int e = check_host(root, length);

	if (e == 0)
		e = check_nodes(root, length);
	return e < 0 ? e : check_groups(root, length);
}
