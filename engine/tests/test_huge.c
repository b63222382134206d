/* SPDX-License-Identifier: Apache-2.0 */
/* Huge pages that are missing: what is said of them, over a copy of the kernel's files. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "job/job.h"
#include "memory/memory_huge.h"
#include "base/message.h"

static char root[] = "/tmp/perch-huge-XXXXXX";

static void put(const char *size, const char *name, unsigned n) {
	char path[PATH_MAX];
	FILE *f;

	(void) snprintf(path, sizeof(path), "mkdir -p %s/kernel/mm/hugepages/hugepages-%s", root, size);
	assert_int_equal(system(path), 0);
	(void) snprintf(path, sizeof(path), "%s/kernel/mm/hugepages/hugepages-%s/%s", root, size, name);
	f = fopen(path, "we");
	assert_non_null(f);
	(void) fprintf(f, "%u\n", n);
	(void) fclose(f);
}

static void assert_says(uint64_t huge, uint64_t length, const char *part) {
	failure_reset();
	assert_int_equal(huge_failure(root, huge, length, ENOMEM), -ENOMEM);
	assert_int_equal(failure_code(), EXIT_HOST);
	if (!strstr(failure_text(), part))
		fail_msg("'%s' does not say '%s'", failure_text(), part);
}

static void test_missing(void **state) {
	(void) state;
	put("2048kB", "nr_hugepages", 10);
	put("2048kB", "free_hugepages", 6);
	put("2048kB", "resv_hugepages", 4);
	/* 2 are free and promised to nobody; 5 are needed, so 3 more. */
	assert_says(JOB_HUGE_2M, 5 * JOB_HUGE_2M, "5 pages are needed, and 2 of 10 are free");
	assert_says(JOB_HUGE_2M, 5 * JOB_HUGE_2M, "echo 13 > ");
	assert_says(JOB_HUGE_2M, 5 * JOB_HUGE_2M, "hugepagesz=2M hugepages=13");
	assert_says(JOB_HUGE_1G, JOB_HUGE_1G, "no huge pages of that size");
	put("1048576kB", "nr_hugepages", 0);
	put("1048576kB", "free_hugepages", 0);
	assert_says(JOB_HUGE_1G, JOB_HUGE_1G, "1 pages are needed, and 0 of 0 are free");
	assert_says(JOB_HUGE_1G, JOB_HUGE_1G, "hugepagesz=1G hugepages=1");
	/* Enough are free, and yet: another limit. */
	assert_says(JOB_HUGE_2M, 2 * JOB_HUGE_2M, "hugetlb.2MB.max");
}

static int clean(void **state) {
	char command[64];

	(void) state;
	(void) snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

int main(void) {
	const struct CMUnitTest tests[] = { cmocka_unit_test_teardown(test_missing, clean) };

	if (!mkdtemp(root))
		abort();
	return cmocka_run_group_tests_name("huge pages", tests, NULL, NULL);
}
