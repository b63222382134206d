/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_huge.h"

#include <limits.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "job/job.h"
#include "base/message.h"

enum { NODES_MAX = 1024 };      /* the kernel's own largest number of NUMA nodes (CONFIG_NODES_SHIFT is at most 10) */

/* Of one size, on all nodes or on those that this process is bound to. */
struct pool {
	char nodes[64];         /* " on NUMA node 0, 1"; empty: all */
	char file[PATH_MAX];    /* where the number of pages is written */
	uint64_t total, free, reserved;
	bool exists;
};

static bool read_number(const char *directory, const char *name, uint64_t *to) {
	unsigned long long n;
	char path[PATH_MAX];
	FILE *f;
	bool ok;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int) sizeof(path))
		return false;
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fscanf(f, "%llu", &n) == 1;
	(void) fclose(f);
	if (ok)
		*to += n;
	return ok;
}

static void add_pool(struct pool *p, const char *directory) {
	if (!read_number(directory, "nr_hugepages", &p->total))
		return;
	p->exists = true;
	(void) read_number(directory, "free_hugepages", &p->free);
	/* Promised to mappings that have not touched them yet; nodes do not count these. */
	(void) read_number(directory, "resv_hugepages", &p->reserved);
	(void) snprintf(p->file, sizeof(p->file), "%.4000s/nr_hugepages", directory);
}

/* libnuma would say the same, for one dependency more. */
static bool bound_nodes(unsigned long mask[NODES_MAX / (CHAR_BIT * sizeof(unsigned long))]) {
	int mode = MPOL_DEFAULT;

	return syscall(SYS_get_mempolicy, &mode, mask, NODES_MAX, NULL, 0UL) == 0 && mode == MPOL_BIND;
}

static void read_pool(const char *sys, uint64_t huge, struct pool *ret) {
	const size_t bits = CHAR_BIT * sizeof(unsigned long);
	unsigned long mask[NODES_MAX / (CHAR_BIT * sizeof(unsigned long))] = { 0 };
	unsigned long long kib = (unsigned long long) (huge >> 10);
	char directory[PATH_MAX];
	size_t n = 0;

	*ret = (struct pool) { .exists = false };
	if (!bound_nodes(mask)) {
		(void) snprintf(directory, sizeof(directory), "%s/kernel/mm/hugepages/hugepages-%llukB", sys, kib);
		add_pool(ret, directory);
		return;
	}
	for (unsigned node = 0; node < NODES_MAX; node++) {
		if (!(mask[node / bits] & 1ul << node % bits))
			continue;
		(void) snprintf(directory, sizeof(directory),
				"%s/devices/system/node/node%u/hugepages/hugepages-%llukB", sys, node, kib);
		add_pool(ret, directory);
		if (n < sizeof(ret->nodes))
			n += (size_t) snprintf(ret->nodes + n, sizeof(ret->nodes) - n, n ? ", %u" : " on NUMA node %u",
					       node);
	}
}

int huge_failure(const char *sys, uint64_t huge, uint64_t length, int error) {
	const char *size = huge == JOB_HUGE_1G ? "1G" : "2M";
	unsigned long long needed = (unsigned long long) (length / huge), available, wanted;
	struct pool p;

	read_pool(sys, huge, &p);
	if (!p.exists)
		return failure(-ENOMEM, EXIT_HOST, "--huge %s: this host has no huge pages of that size (no "
			       "hugepages-%llukB in %s/kernel/mm/hugepages); choose another size, or leave --huge out",
			       size, (unsigned long long) (huge >> 10), sys);
	available = p.free - MIN(p.reserved, p.free);
	if (available >= needed)
		return failure(-ENOMEM, EXIT_HOST,
			       "--huge %s: %llu pages are needed and %llu are free%s, but the kernel gives none: %s; "
			       "see the limit of this control group (hugetlb.%sB.max), or leave --huge out", size,
			       needed, available, p.nodes, strerror(error), size);
	wanted = p.total - MIN(available, p.total) + needed;
	return failure(-ENOMEM, EXIT_HOST, "--huge %s: %llu pages are needed, and %llu of %llu are free%s: %s; reserve "
		       "them with 'echo %llu > %s', or at boot with hugepagesz=%s hugepages=%llu, or leave --huge out",
		       size, needed, available, (unsigned long long) p.total, p.nodes, strerror(error), wanted, p.file,
		       size, wanted);
}
