/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a job may not have: refused before any page of it is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/message.h"
#include "job/memory_kind.h"
#include "memory/memory.h"
#include "memory/memory_room.h"

#define MIB (UINT64_C(1) << 20)

static char meminfo[] = "/tmp/perch-room-XXXXXX";

static void put(const char *text) {
	FILE *f = fopen(meminfo, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
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
	put("MemTotal:        4096 kB\nMemFree:          512 kB\nMemAvailable:    2048 kB\nSwapFree:       9999 kB\n");
	assert_int_equal(room_check(meminfo, 2 * MIB), 0);
	assert_refused(room_check(meminfo, 2 * MIB + 1), "take 2 MiB and this host has 2 MiB available");
	put("MemTotal:        4096 kB\n");
	assert_int_equal(room_check(meminfo, UINT64_MAX / 2), 0);
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
		cmocka_unit_test(test_what_the_host_has),
		cmocka_unit_test(test_arenas_share_a_limit),
		cmocka_unit_test(test_an_arena_larger_than_the_host),
	};
	int fd = mkstemp(meminfo), failed;

	if (fd < 0)
		return 1;
	(void) close(fd);
	failed = cmocka_run_group_tests_name("room", tests, NULL, NULL);
	(void) unlink(meminfo);
	return failed;
}
