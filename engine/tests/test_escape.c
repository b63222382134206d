/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: no text from outside moves a cursor, sets a colour or turns the order of signs; all of it can be seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/escape.h"
#include "base/message.h"

static void assert_escaped(const char *text, const char *expected) {
	char ret[128];

	escape_text(text, ret, sizeof(ret));
	assert_string_equal(ret, expected);
}

static void test_what_is_seen_stays(void **state) {
	(void) state;
	assert_escaped("", "");
	assert_escaped("beta: 2 \xc2\xb5s \\x1b", "beta: 2 \xc2\xb5s \\x1b");
	assert_escaped("\xe6\xb8\xac \xf0\x9f\x90\x9f \xc2\xa0", "\xe6\xb8\xac \xf0\x9f\x90\x9f \xc2\xa0");
}

static void test_what_is_not_seen_becomes_its_escape(void **state) {
	(void) state;
	assert_escaped("\033[31mPASS\r\n\tall\a\x7f", "\\x1b[31mPASS\\r\\n\\tall\\x07\\x7f");
	assert_escaped("\xc2\x9b" "31m", "\\x9b31m");
	assert_escaped("a\xe2\x80\xae" "b\xe2\x81\xa6" "c\xe2\x80\xa8" "d\xd8\x9c", "a\\u202eb\\u2066c\\u2028d\\u061c");
}

/* A terminal may take each of these for something: lone C1 bytes, overlong forms, surrogates, half of a sign. */
static void test_what_is_no_utf_8_becomes_its_escape(void **state) {
	(void) state;
	assert_escaped("\x9b" "31m", "\\x9b31m");
	assert_escaped("\xc0\x9b\xe0\x80\x9b", "\\xc0\\x9b\\xe0\\x80\\x9b");
	assert_escaped("\xed\xa0\x80", "\\xed\\xa0\\x80");
	assert_escaped("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	assert_escaped("ab\xe2\x80", "ab\\xe2\\x80");
	assert_escaped("\xff\xf8", "\\xff\\xf8");
}

static void test_it_is_cut_between_signs(void **state) {
	char ret[8];

	(void) state;
	escape_text("abcd\033[0m", ret, sizeof(ret));
	assert_string_equal(ret, "abcd");
	escape_text("abcdef\xc2\xb5", ret, sizeof(ret));
	assert_string_equal(ret, "abcdef");
	escape_text("abcdefgh", ret, sizeof(ret));
	assert_string_equal(ret, "abcdefg");
}

/* The words of a failure travel to the peer and into records. */
static void test_failures_are_escaped(void **state) {
	(void) state;
	failure_reset();
	(void) failure_quiet(-EIO, EXIT_PEER, "beta says: %s", "\033]0;owned\a");
	assert_string_equal(failure_text(), "beta says: \\x1b]0;owned\\x07");
}

/* What notice() writes, read back from a pipe in the place of standard error. */
static void test_lines_are_escaped(void **state) {
	char line[64] = { 0 };
	int two[2], saved = dup(STDERR_FILENO);

	(void) state;
	assert_int_equal(pipe(two), 0);
	(void) dup2(two[1], STDERR_FILENO);
	notice("%s", "one\ntwo\033[2J");
	(void) dup2(saved, STDERR_FILENO);
	(void) close(saved);
	(void) close(two[1]);
	assert_true(read(two[0], line, sizeof(line) - 1) > 0);
	(void) close(two[0]);
	assert_string_equal(line, "perch: one\\ntwo\\x1b[2J\n");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_seen_stays),
		cmocka_unit_test(test_what_is_not_seen_becomes_its_escape),
		cmocka_unit_test(test_what_is_no_utf_8_becomes_its_escape),
		cmocka_unit_test(test_it_is_cut_between_signs),
		cmocka_unit_test(test_failures_are_escaped),
		cmocka_unit_test(test_lines_are_escaped),
	};

	return cmocka_run_group_tests_name("escape", tests, NULL, NULL);
}
