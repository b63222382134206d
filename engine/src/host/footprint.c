/* SPDX-License-Identifier: Apache-2.0 */
#include "footprint.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; madvise(2) refuses what it does not know */
#endif

static int64_t resident_bytes(void) {
	long long size, pages = -1;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return -1;
	if (fscanf(f, "%lld %lld", &size, &pages) != 2)
		pages = -1;
	(void) fclose(f);
	return pages < 0 ? -1 : pages * (int64_t) sysconf(_SC_PAGESIZE);
}

static int64_t handles(void) {
	int64_t n = -3; /* ".", "..", and the directory itself */
	DIR *d = opendir("/proc/self/fd");

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	(void) closedir(d);
	return n;
}

/* One mapping of /proc/self/smaps: its first line is read, and its size and what is resident follow. */
struct mapping {
	unsigned long start, end;
	char permissions[8], path[64];
	long long size_kb, resident_kb;
	bool guarded;           /* what lies right below may not be touched: a thread's stack */
};

/*
 * Ours alone, and none of a file; a heap has a name in brackets.
 * Larger holes are no rings but address space that somebody keeps.
 */
static bool is_to_settle(const struct mapping *m) {
	enum { HOLE_MAX_KB = 64 << 10 };
	bool anonymous = m->path[0] == '\0' || strncmp(m->path, "[heap]", 6) == 0 || strncmp(m->path, "[anon", 5) == 0;
	long long hole = m->size_kb - m->resident_kb;

	return anonymous && !m->guarded && streq(m->permissions, "rw-p") && hole > 0 && hole <= HOLE_MAX_KB;
}

void footprint_settle(void) {
	struct mapping m = { 0 }, next;
	char line[512];
	FILE *f = fopen("/proc/self/smaps", "re");

	while (f && fgets(line, sizeof(line), f)) {
		next = (struct mapping) { 0 };
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %63s", &next.start, &next.end, next.permissions,
			   next.path) >= 3) {
			next.guarded = m.end == next.start && strncmp(m.permissions, "---", 3) == 0;
			m = next;
		} else if (sscanf(line, "Size: %lld", &m.size_kb) == 1)
			continue;
		else if (sscanf(line, "Rss: %lld", &m.resident_kb) == 1 && is_to_settle(&m))
			(void) madvise((void *) m.start, m.end - m.start, MADV_POPULATE_WRITE);
	}
	if (f)
		(void) fclose(f);
}

struct footprint footprint_now(void) {
	return (struct footprint) { .resident_bytes = resident_bytes(), .handles = handles() };
}
