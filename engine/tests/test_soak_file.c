/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: what was said is on disk, whatever ended the process; half a line is cut off;
 * what a full disk refuses is kept, up to a bound, and written later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/message.h"
#include "output/soak_file.h"

static char path[] = "/tmp/perch-soak-file.XXXXXX";
static struct soak_file f;
static unsigned lines;
static unsigned folders_synced, files_synced;

/* In the place of the C library's. */
int fsync(int fd) {
	struct stat s;

	if (fstat(fd, &s) == 0)
		*(S_ISDIR(s.st_mode) ? &folders_synced : &files_synced) += 1;
	return (int) syscall(SYS_fsync, fd);
}

static int count(const json_t *line, void *userdata) {
	(void) line;
	(void) userdata;
	lines++;
	return 0;
}

static int make_path(void **state) {
	int fd;

	(void) state;
	memcpy(path + strlen(path) - 6, "XXXXXX", 6);
	fd = mkstemp(path);
	lines = 0;
	failure_reset();
	return fd < 0 || close(fd) < 0 ? -1 : 0;
}

static int remove_path(void **state) {
	(void) state;
	soak_file_close(&f);
	return unlink(path);
}

static void put(const char *text, size_t n) {
	FILE *out = fopen(path, "we");

	assert_non_null(out);
	assert_int_equal(fwrite(text, 1, n, out), n);
	assert_int_equal(fclose(out), 0);
}

static void holds(const char *text) {
	char found[512] = "";
	FILE *in = fopen(path, "re");

	assert_non_null(in);
	(void) !fread(found, 1, sizeof(found) - 1, in);
	(void) fclose(in);
	assert_string_equal(found, text);
}

static void test_lines_are_in_the_file_at_once(void **state) {
	(void) state;
	assert_int_equal(soak_file_open(path, count, NULL, &f), 0);
	soak_file_append(&f, "{\"a\":1}");
	holds("{\"a\":1}\n");
	soak_file_append(&f, "{\"a\":2}");
	holds("{\"a\":1}\n{\"a\":2}\n");
	assert_null(soak_file_kept(&f));
}

static void test_half_a_line_is_cut_off(void **state) {
	static const char half[] = "{\"a\":1}\n{\"a\":2}\n{\"a\":\"longer than what is written over it";

	(void) state;
	put(half, sizeof(half) - 1);
	assert_int_equal(soak_file_open(path, count, NULL, &f), 0);
	assert_int_equal(lines, 2);
	holds("{\"a\":1}\n{\"a\":2}\n");
	soak_file_append(&f, "{\"a\":3}");
	holds("{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n");
}

/* A file system may keep a file's length, and lose what was in it. */
static void test_a_last_line_of_nothing_is_cut_off(void **state) {
	static const char zeros[] = "{\"a\":1}\n\0\0\0\0\n";

	(void) state;
	put(zeros, sizeof(zeros) - 1);
	assert_int_equal(soak_file_open(path, count, NULL, &f), 0);
	assert_int_equal(lines, 1);
	holds("{\"a\":1}\n");
}

static void test_damage_in_the_middle_is_refused(void **state) {
	static const char damaged[] = "{\"a\":1}\n{\"a\"\n{\"a\":3}\n";

	(void) state;
	put(damaged, sizeof(damaged) - 1);
	assert_int_equal(soak_file_open(path, count, NULL, &f), -EBADMSG);
	assert_non_null(strstr(failure_text(), "line 2"));
	holds(damaged);
}

static void test_two_cannot_keep_one_file(void **state) {
	struct soak_file other;

	(void) state;
	assert_int_equal(soak_file_open(path, count, NULL, &f), 0);
	assert_true(soak_file_open(path, count, NULL, &other) < 0);
	assert_non_null(strstr(failure_text(), "another perch"));
}

/* The kernel refuses what goes beyond; EFBIG then stands for ENOSPC. */
static void limit(rlim_t bytes) {
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
	l.rlim_cur = MIN(bytes, l.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void test_what_the_disk_refuses_is_written_later(void **state) {
	(void) state;
	assert_int_equal(soak_file_open(path, count, NULL, &f), 0);
	soak_file_append(&f, "{\"a\":1}");
	limit(12); /* one line and a half: what fits of the second must not stay */
	soak_file_append(&f, "{\"a\":2}");
	soak_file_append(&f, "{\"a\":3}");
	holds("{\"a\":1}\n");
	assert_true(f.failing);
	assert_string_equal(soak_file_kept(&f), "{\"a\":2}\n{\"a\":3}\n");
	limit(RLIM_INFINITY);
	soak_file_append(&f, "{\"a\":4}");
	holds("{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n");
	assert_false(f.failing);
	assert_null(soak_file_kept(&f));
	assert_int_equal(f.dropped, 0);
}

static void test_memory_is_bounded(void **state) {
	(void) state;
	assert_int_equal(soak_file_open(path, count, NULL, &f), 0);
	f.kept_max = 20; /* two lines of 8, and no third */
	limit(0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(soak_file_append(&f, "{\"a\":1}"), i < 2);
	assert_int_equal(strlen(soak_file_kept(&f)), 16);
	assert_int_equal(f.dropped, 3);
	limit(RLIM_INFINITY);
	/* The one that finds room again is not lost. */
	assert_true(soak_file_append(&f, "{\"a\":9}"));
	holds("{\"a\":1}\n{\"a\":1}\n{\"a\":9}\n");
	assert_int_equal(f.dropped, 3);
}

static void test_the_folder_knows_a_new_file_before_a_line_is_in_it(void **state) {
	(void) state;
	folders_synced = files_synced = 0;
	assert_int_equal(soak_file_open(path, count, NULL, &f), 0);
	assert_int_equal(folders_synced, 1);
	soak_file_append(&f, "{\"a\":1}");
	soak_file_append(&f, "{\"a\":2}");
	assert_int_equal(files_synced, 2);
	soak_file_close(&f);
	/* One that is continued is known. */
	assert_int_equal(soak_file_open(path, count, NULL, &f), 0);
	assert_int_equal(folders_synced, 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines_are_in_the_file_at_once, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_half_a_line_is_cut_off, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_a_last_line_of_nothing_is_cut_off, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_damage_in_the_middle_is_refused, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_two_cannot_keep_one_file, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_what_the_disk_refuses_is_written_later, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_memory_is_bounded, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_the_folder_knows_a_new_file_before_a_line_is_in_it, make_path,
						remove_path),
	};

	(void) signal(SIGXFSZ, SIG_IGN); /* else a write beyond the limit ends the program */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
