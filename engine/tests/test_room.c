/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a job may not have: refused before any page of it is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "base/message.h"
#include "job/memory_kind.h"
#include "memory/memory.h"
#include "memory/memory_room.h"

#define MIB (UINT64_C(1) << 20)

static char root[] = "/tmp/perch-room-XXXXXX";

static void put(const char *directory, const char *name, const char *text) {
	char path[PATH_MAX];
	FILE *f;

	(void) snprintf(path, sizeof(path), "mkdir -p %s/%s", root, directory);
	assert_int_equal(system(path), 0);
	(void) snprintf(path, sizeof(path), "%s/%s/%s", root, directory, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int clean(void **state) {
	char command[64];

	(void) state;
	(void) snprintf(command, sizeof(command), "rm -rf %s/*", root);
	return system(command);
}

static void assert_refused(int r, const char *part) {
	assert_int_equal(r, -ENOMEM);
	assert_int_equal(failure_code(), EXIT_HOST);
	if (!strstr(failure_text(), part))
		fail_msg("'%s' does not say '%s'", failure_text(), part);
	failure_reset();
}

static void test_what_the_host_has(void **state) {
	(void) state;
	put("proc", "meminfo",
	    "MemTotal:        4096 kB\nMemFree:          512 kB\nMemAvailable:    2048 kB\nSwapFree:       9999 kB\n");
	assert_int_equal(room_check(root, 2 * MIB), 0);
	assert_refused(room_check(root, 2 * MIB + 1), "take 2 MiB and this host has 2 MiB available");
	put("proc", "meminfo", "MemTotal:        4096 kB\n");
	assert_int_equal(room_check(root, UINT64_MAX / 2), 0);
}

/* --numa binds, and the kernel then ends a process sooner than it takes another node's memory. */
static void test_what_bound_nodes_have(void **state) {
	unsigned long first = 1;

	(void) state;
	put("sys/devices/system/node/node0", "meminfo",
	    "Node 0 MemTotal:  9000 kB\nNode 0 MemFree:  1024 kB\nNode 0 Active(file):  512 kB\n"
	    "Node 0 Inactive(file):  256 kB\nNode 0 FilePages:  8000 kB\nNode 0 SReclaimable:  256 kB\n");
	assert_int_equal(room_check(root, 8 * MIB), 0);
	if (syscall(SYS_set_mempolicy, MPOL_BIND, &first, 64ul) != 0)
		skip();
	assert_int_equal(room_check(root, 2 * MIB), 0);
	assert_refused(room_check(root, 2 * MIB + 1), "take 2 MiB and NUMA node 0 has 2 MiB available");
	(void) syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0ul);
}

static void test_what_a_control_group_has(void **state) {
	(void) state;
	put("proc/self", "cgroup", "0::/slurm/job7\n");
	put("sys/fs/cgroup/slurm/job7", "memory.max", "max\n");
	put("sys/fs/cgroup/slurm/job7", "memory.current", "1048576\n");
	assert_int_equal(room_check(root, 64 * MIB), 0);
	put("sys/fs/cgroup/slurm/job7", "memory.max", "4194304\n");
	assert_int_equal(room_check(root, 3 * MIB), 0);
	assert_refused(room_check(root, 3 * MIB + 1), "control group /slurm/job7 has 3 MiB available");
	/* files that it has read are given up first */
	put("sys/fs/cgroup/slurm/job7", "memory.stat", "anon 9\ninactive_file 262144\nactive_file 262144\n");
	assert_int_equal(room_check(root, 3 * MIB + MIB / 2), 0);
	assert_refused(room_check(root, 4 * MIB), "control group /slurm/job7 has 3 MiB available");
	/* the limit of one above holds, too; so does a container's own */
	put("sys/fs/cgroup/slurm", "memory.max", "2097152\n");
	put("sys/fs/cgroup/slurm", "memory.current", "1048576\n");
	assert_refused(room_check(root, MIB + 1), "control group /slurm has 1 MiB available");
	put("sys/fs/cgroup", "memory.max", "1048576\n");
	put("sys/fs/cgroup", "memory.current", "9999999\n");
	assert_refused(room_check(root, 1), "control group / has 0 MiB available");
}

static void test_what_a_control_group_of_version_1_has(void **state) {
	(void) state;
	put("proc/self", "cgroup", "5:devices:/x\n4:memory:/docker/a\n1:name=systemd:/\n0::/\n");
	put("sys/fs/cgroup/memory/docker", "memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/memory/docker", "memory.usage_in_bytes", "1048576\n");
	put("sys/fs/cgroup/memory/docker/a", "memory.limit_in_bytes", "2097152\n");
	put("sys/fs/cgroup/memory/docker/a", "memory.usage_in_bytes", "1048576\n");
	put("sys/fs/cgroup/memory/docker/a", "memory.stat", "total_inactive_file 524288\n");
	assert_int_equal(room_check(root, MIB + MIB / 2), 0);
	assert_refused(room_check(root, 2 * MIB), "control group /docker/a has 1 MiB available");
}

static void test_arenas_share_a_limit(void **state) {
	const struct memory_kind host = { .type = MEMORY_HOST };
	struct arena a, b;

	(void) state;
	room_limit(3 * MIB);
	assert_int_equal(arena_open_flat(&a, 2 * MIB, 1, false, &host), 0);
	assert_refused(arena_open_flat(&b, 2 * MIB, 1, false, &host),
		       "more than the 3072 KiB of 'perch serve --max-memory'");
	assert_int_equal(arena_open_flat(&b, MIB, 1, false, &host), 0);
	arena_close(&a);
	arena_close(&b);
	/* what was closed, or refused, is there again */
	assert_int_equal(arena_open_flat(&a, 3 * MIB, 1, false, &host), 0);
	arena_close(&a);
	room_limit(0);
}

/* More than any machine has: mmap() alone would take it where memory is overcommitted, and then touch it. */
static void test_an_arena_larger_than_the_host(void **state) {
	const struct memory_kind host = { .type = MEMORY_HOST };
	struct arena a;

	(void) state;
	assert_refused(arena_open_flat(&a, UINT64_C(1) << 46, 1, false, &host), "MiB available");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_what_the_host_has, clean),
		cmocka_unit_test_teardown(test_what_bound_nodes_have, clean),
		cmocka_unit_test_teardown(test_what_a_control_group_has, clean),
		cmocka_unit_test_teardown(test_what_a_control_group_of_version_1_has, clean),
		cmocka_unit_test(test_arenas_share_a_limit),
		cmocka_unit_test(test_an_arena_larger_than_the_host),
	};
	int failed;

	if (!mkdtemp(root))
		return 1;
	failed = cmocka_run_group_tests_name("room", tests, NULL, NULL);
	(void) rmdir(root);
	return failed;
}
