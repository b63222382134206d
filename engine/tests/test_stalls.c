/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: of more stalls than have room the longest keep their times, in order, and all are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "measure/run.h"

static void test_the_longest_keep_their_times(void **state) {
	const uint64_t ms = NSEC_PER_MSEC, spare = 10;
	static struct run r;
	const struct outcome *o = &r.outcome;
	uint64_t kept = 0, longest = 0;

	(void) state;
	/* one of 5 s when there is no room any more, and behind it one that is shorter than all */
	for (uint64_t k = 0; k < RUN_STALLS_MAX + spare; k++)
		run_note_stall(&r, k == RUN_STALLS_MAX + 2 ? 5000 * ms : (35 + k) * ms);
	run_note_stall(&r, ms);
	assert_true(o->n_stalls == RUN_STALLS_MAX + spare + 1);
	for (size_t k = 0; k < RUN_STALLS_MAX; k++) {
		uint64_t ns = o->stalls[k].end_ns - o->stalls[k].start_ns;

		assert_true(k == 0 || o->stalls[k].end_ns >= o->stalls[k - 1].end_ns);
		assert_true(ns >= (35 + spare) * ms);
		longest = MAX(longest, ns);
		kept += ns;
	}
	assert_true(longest >= 5000 * ms);
	assert_true(o->stalled_ns > kept);
}

/*
 * What is known when an interval is over was before its stalls: it goes to their front, and the shortest goes for it.
 */
static void test_an_earlier_one_is_the_first(void **state) {
	const uint64_t ms = NSEC_PER_MSEC;
	static struct outcome o;
	const struct stall longer = { .start_ns = ms, .end_ns = 900 * ms }, shorter = { .start_ns = 1, .end_ns = 2 };

	(void) state;
	for (uint64_t k = 0; k < RUN_STALLS_MAX; k++) {
		struct stall s = { .start_ns = (k + 1) * 1000 * ms };

		/* the last is no short one, and the third is the shortest */
		s.end_ns = s.start_ns + (k == 2 ? 20 : 30 + k) * ms;
		outcome_add_stall(&o, &s, false);
	}
	outcome_add_stall(&o, &longer, true);
	outcome_add_stall(&o, &shorter, true);
	assert_true(o.n_stalls == RUN_STALLS_MAX + 2);
	assert_true(o.stalls[0].end_ns == longer.end_ns);
	for (size_t k = 1; k < RUN_STALLS_MAX; k++) {
		assert_true(o.stalls[k].start_ns > o.stalls[k - 1].start_ns);
		assert_true(o.stalls[k].end_ns - o.stalls[k].start_ns >= 30 * ms);
	}
	assert_true(o.stalls[RUN_STALLS_MAX - 1].start_ns == RUN_STALLS_MAX * 1000 * ms);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_longest_keep_their_times),
		cmocka_unit_test(test_an_earlier_one_is_the_first),
	};

	return cmocka_run_group_tests_name("stalls", tests, NULL, NULL);
}
