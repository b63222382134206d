/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_room.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/message.h"

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

/* Kernels before 3.14 do not say: then mmap() decides alone. */
static uint64_t available(const char *meminfo) {
	unsigned long long kib = UINT64_MAX >> 10;
	char line[128];
	FILE *f = fopen(meminfo, "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (f)
		(void) fclose(f);
	return (uint64_t) kib << 10;
}

int room_check(const char *meminfo, uint64_t length) {
	uint64_t free = available(meminfo);

	if (length <= free)
		return 0;
	return failure(-ENOMEM, EXIT_HOST, "the buffers take %llu MiB and this host has %llu MiB available; "
		       "lower --footprint, --size, --outstanding, --batch, --stride or --threads",
		       (unsigned long long) (length >> 20), (unsigned long long) (free >> 20));
}
