/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: a mistyped word finds its neighbour, and a word that is far from all finds none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/suggest.h"

static const char *const words[] = {
	"size", "send", "send-imm", "rc", "uc", "iterations", "server-device", "server-port", NULL
};

static void finds(const char *word, const char *expected) {
	const char *found = suggest_nearest(word, words);

	if (expected)
		assert_string_equal(found ? found : "nothing", expected);
	else
		assert_null(found);
}

static void test_distance(void **state) {
	char most[SUGGEST_WORD_MAX], over[SUGGEST_WORD_MAX + 1];

	(void) state;
	assert_int_equal(word_distance("", ""), 0);
	assert_int_equal(word_distance("size", "size"), 0);
	assert_int_equal(word_distance("SIZE", "size"), 0);
	assert_int_equal(word_distance("", "size"), 4);
	assert_int_equal(word_distance("size", ""), 4);
	assert_int_equal(word_distance("sise", "size"), 1); /* substitution */
	assert_int_equal(word_distance("sizze", "size"), 1); /* insertion */
	assert_int_equal(word_distance("sze", "size"), 1); /* deletion */
	assert_int_equal(word_distance("szie", "size"), 1); /* swap of neighbours */
	assert_int_equal(word_distance("kitten", "sitting"), 3);
	assert_int_equal(word_distance("abcdef", "badcfe"), 3); /* three swaps */
	assert_int_equal(word_distance("ca", "abc"), 3); /* a swapped pair is not edited again */

	memset(most, 'a', sizeof(most));
	most[sizeof(most) - 1] = 0;
	memset(over, 'a', sizeof(over));
	over[sizeof(over) - 1] = 0;
	assert_int_equal(word_distance(most, most), 0);
	assert_int_equal(word_distance(over, over), SUGGEST_WORD_MAX);
}

static void test_nearest(void **state) {
	(void) state;
	finds("sise", "size");
	finds("sned", "send");
	finds("sendimm", "send-imm");
	finds("itertaions", "iterations");
	finds("cr", NULL); /* of two letters none may be wrong */
	finds("RC", "rc");
	finds("frobnicate", NULL);
	finds("", NULL);
}

static void test_beginning(void **state) {
	(void) state;
	finds("iter", "iterations");
	finds("ITER", "iterations");
	finds("i", NULL); /* one letter begins too many words */
	finds("server", NULL); /* two begin so */
	finds("server-d", "server-device");
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_beginning),
	};

	return cmocka_run_group_tests_name("suggest", tests, NULL, NULL);
}
