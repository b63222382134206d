/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: the line of progress says what runs and what is left, and fits one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/progress.h"

static void says(const struct progress *p, uint64_t elapsed_s, uint64_t done, const char *expected) {
	char text[PROGRESS_LINE_MAX];

	progress_text(p, p->begin_ns + elapsed_s * NSEC_PER_SEC, done, text);
	assert_string_equal(text, expected);
}

static void test_by_duration(void **state) {
	struct progress p = { .what = "64 bytes", .step = 2, .steps = 4, .duration_ns = 10 * NSEC_PER_SEC };

	(void) state;
	says(&p, 0, 0, "perch: 64 bytes, 2 of 4: warm-up");
	p.begin_ns = 5;
	says(&p, 0, 0, "perch: 64 bytes, 2 of 4: 30 s left"); /* of this size and the two that follow */
	says(&p, 7, 123, "perch: 64 bytes, 2 of 4: 23 s left");
	says(&p, 99, 123, "perch: 64 bytes, 2 of 4: 20 s left"); /* late: nothing below 0 */
	p.step = 4;
	says(&p, 10, 123, "perch: 64 bytes, 4 of 4: 0 s left");
	p.duration_ns = 600 * NSEC_PER_SEC;
	says(&p, 1, 123, "perch: 64 bytes, 4 of 4: 10 min left");
	p.duration_ns = 86400 * NSEC_PER_SEC;
	says(&p, 60, 123, "perch: 64 bytes, 4 of 4: 23 h 59 min left");
}

static void test_by_count(void **state) {
	struct progress p = { .what = "4096 bytes", .step = 1, .steps = 2, .count = 1000, .begin_ns = 5 };

	(void) state;
	says(&p, 3, 0, "perch: 4096 bytes, 1 of 2: measuring");
	says(&p, 10, 250, "perch: 4096 bytes, 1 of 2: 25 %, 30 s left at this size");
	says(&p, 10, 2000, "perch: 4096 bytes, 1 of 2: 100 %, 0 s left at this size");
	p.step = 2;
	says(&p, 10, 250, "perch: 4096 bytes, 2 of 2: 25 %, 30 s left");
}

/* A transfer's batches are not counted meanwhile. */
static void test_by_neither(void **state) {
	struct progress p = { .what = "4096 bytes in batches of 32", .step = 1, .steps = 2, .begin_ns = 5 };

	(void) state;
	says(&p, 3, 7, "perch: 4096 bytes in batches of 32, 1 of 2: measuring");
}

static void test_the_longest_fits(void **state) {
	struct progress p = { .step = SIZE_MAX, .steps = SIZE_MAX, .count = UINT64_MAX, .begin_ns = 1 };
	char text[PROGRESS_LINE_MAX];

	(void) state;
	memset(p.what, 'x', sizeof(p.what) - 1);
	progress_text(&p, UINT64_MAX, 1, text);
	assert_true(strlen(text) < PROGRESS_LINE_MAX);
	p.duration_ns = UINT64_MAX;
	progress_text(&p, 1, 1, text);
	assert_true(strlen(text) < PROGRESS_LINE_MAX);
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_duration),
		cmocka_unit_test(test_by_count),
		cmocka_unit_test(test_by_neither),
		cmocka_unit_test(test_the_longest_fits),
	};

	return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
