/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <linux/mman.h> /* MAP_HUGE_SHIFT */
#include <sys/mman.h>

#include "message.h"

/*
 * What shared slots may take in all: half of a small level 2 cache (256 KiB on the oldest supported server cores), so that
 * a deep queue measures the path and not memory. perftest cycles through a page (4 KiB) for the same reason.
 */
#define SHARED_BYTES (UINT64_C(128) * 1024)

/* Huge pages come from a pool that the administrator fills; the kernel takes them whole at once or fails (mmap(2)). */
static int no_memory(uint64_t length, uint32_t n, uint64_t huge) {
	unsigned long long mib = (unsigned long long) (length >> 20);

	if (!huge)
		return failure(-ENOMEM, EXIT_HOST, "cannot get %llu MiB for %u buffers each way: %s; lower --size or --outstanding", mib, n,
			       strerror(errno));
	return failure(-ENOMEM, EXIT_HOST, "cannot get %llu MiB in huge pages of %llu MiB: %s; reserve %llu of them "
		       "(/sys/kernel/mm/hugepages/hugepages-%llukB/nr_hugepages), or leave --huge out", mib, (unsigned long long) (huge >> 20),
		       strerror(errno), (unsigned long long) (length / huge), (unsigned long long) (huge >> 10));
}

int arena_open(struct arena *ret, uint64_t slot_bytes, uint32_t slots, bool distinct, uint64_t huge) {
	uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE), whole = huge ? huge : 2 * page, stride, length;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
	uint32_t n = slots, mask = UINT32_MAX;
	void *p;

	/* Messages of different slots never share a cache line (64 bytes on x86-64, 128 fetched as a pair). */
	stride = (slot_bytes + 127) / 128 * 128;
	if (!distinct) {
		/* The largest power of two within the bound, so that a place is found by masking. */
		for (n = 1; n * 2 <= slots && n * 2 * stride <= SHARED_BYTES; n *= 2)
			;
		mask = n - 1;
	}
	if (stride > (SIZE_MAX - 2 * whole) / 2 / n)
		return failure(-ENOMEM, EXIT_HOST, "%u buffers of %llu bytes are more than this host can address; "
			       "lower --size or --outstanding", n, (unsigned long long) slot_bytes);
	/* Each half begins with a page, and both together fill whole huge ones. */
	length = ((stride * n + page - 1) / page * page * 2 + whole - 1) / whole * whole;

	if (huge)
		flags |= MAP_HUGETLB | __builtin_ctzll(huge) << MAP_HUGE_SHIFT;
	p = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (p == MAP_FAILED)
		return no_memory(length, n, huge);
	*ret = (struct arena) {
		.base = p,
		.length = length,
		.slot_bytes = slot_bytes,
		.stride = stride,
		.slots = slots,
		.distinct = n,
		.mask = mask,
	};
	return 0;
}

void arena_close(struct arena *arena) {
	if (arena->base)
		(void) munmap(arena->base, arena->length);
	*arena = (struct arena) { 0 };
}
