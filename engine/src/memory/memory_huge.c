/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_huge.h"

#include <stdio.h>

#include "job/job.h"
#include "memory_kernel.h"
#include "base/message.h"

/* Of one size, on all nodes or on those that this process is bound to. */
struct pool {
	char nodes[NODES_TEXT + 4];     /* " on NUMA node 0, 1"; empty: all */
	char file[PATH_MAX];            /* where the number of pages is written */
	uint64_t total, free, reserved;
	bool exists;
};

static void add_pool(struct pool *p, const char *directory) {
	if (!kernel_number(directory, "nr_hugepages", &p->total))
		return;
	p->exists = true;
	(void) kernel_number(directory, "free_hugepages", &p->free);
	/* Promised to mappings that have not touched them yet; nodes do not count these. */
	(void) kernel_number(directory, "resv_hugepages", &p->reserved);
	(void) snprintf(p->file, sizeof(p->file), "%.4000s/nr_hugepages", directory);
}

static void read_pool(const char *sys, uint64_t huge, struct pool *ret) {
	unsigned long long kib = (unsigned long long) (huge >> 10);
	char directory[PATH_MAX], names[NODES_TEXT];
	struct nodes nodes;

	*ret = (struct pool) { .exists = false };
	if (!nodes_bound(&nodes)) {
		(void) snprintf(directory, sizeof(directory), "%s/kernel/mm/hugepages/hugepages-%llukB", sys, kib);
		add_pool(ret, directory);
		return;
	}
	for (unsigned node = 0; node < NODES_MAX; node++) {
		if (!nodes_have(&nodes, node))
			continue;
		(void) snprintf(directory, sizeof(directory),
				"%s/devices/system/node/node%u/hugepages/hugepages-%llukB", sys, node, kib);
		add_pool(ret, directory);
	}
	nodes_format(&nodes, names);
	(void) snprintf(ret->nodes, sizeof(ret->nodes), " on %s", names);
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
