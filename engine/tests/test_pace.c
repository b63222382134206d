/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: messages go at their intended times; what cannot keep up catches up, gives up and says so.
 * Times are made up where possible.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/pace.h"

enum { PERIOD = 1000000 }; /* 1000 messages a second, in ns */

static struct job job;
static struct run run = { .job = &job, .clock = { .ns_per_tick = 1 }, .phase = { .size = 1000 } };

static struct pace begin(enum rate_unit unit, double rate, uint64_t gap_ns) {
	struct pace p;

	job = (struct job) { .rate_unit = unit, .rate = rate, .gap_ns = gap_ns };
	pace_begin(&p, &run);
	return p;
}

static void test_unpaced(void **state) {
	struct pace p = begin(RATE_NONE, 0, 0);

	(void) state;
	assert_false(pace_active(&p));
	for (int i = 0; i < 10; i++)
		assert_true(pace_due(&p, 0));
	assert_false(pace_is_behind(&p, UINT64_MAX / 2));
}

static void test_rate_units(void **state) {
	(void) state;
	assert_true(begin(RATE_MESSAGES, 1000, 0).period == PERIOD);
	/* 1000 bytes at 8 Mb/s are 1000 messages a second. */
	assert_true(begin(RATE_BITS, 8e6, 0).period == PERIOD);
}

static void test_due_times_lie_on_a_grid(void **state) {
	struct pace p = begin(RATE_MESSAGES, 1000, 0);
	uint64_t t = p.origin;

	(void) state;
	for (uint64_t i = 0; i < 100; i++) {
		if (i > 0)
			assert_false(pace_due(&p, t + i * PERIOD - 1));
		assert_true(pace_due(&p, t + i * PERIOD));
	}
	assert_int_equal(p.skipped, 0);
	assert_false(pace_is_behind(&p, t + 99 * PERIOD + PERIOD / 2));
}

/* What passes between two intervals of a soak is made up for, so that the rate holds over all of them. */
static void test_a_pace_that_is_resumed_loses_nothing(void **state) {
	struct pace p = begin(RATE_MESSAGES, 1000, 0), next;
	uint64_t t = p.origin, sent = 0;

	(void) state;
	for (uint64_t now = t; now < t + 100 * PERIOD; now += PERIOD / 2)
		sent += pace_due(&p, now);
	next = begin(RATE_MESSAGES, 1000, 0);
	pace_resume(&next, pace_mark(&p));
	/* Ten periods later, at the first look, ten are due at once; then the grid is the old one. */
	for (uint64_t now = t + 110 * PERIOD; now < t + 200 * PERIOD; now += PERIOD / 20)
		sent += pace_due(&next, now);
	assert_int_equal(sent, 200);
	assert_int_equal(next.skipped, 0);
	p = begin(RATE_NONE, 0, 0);
	assert_int_equal(pace_mark(&p), 0);
}

static void test_a_late_one_catches_up(void **state) {
	struct pace p = begin(RATE_MESSAGES, 1000, 0);
	uint64_t t = p.origin, late = t + 10 * PERIOD;

	(void) state;
	/* 0 to 10 are due by now, 11 is not. */
	for (int i = 0; i <= 10; i++)
		assert_true(pace_due(&p, late));
	assert_false(pace_due(&p, late));
	assert_int_equal(p.skipped, 0);
}

static void test_a_backlog_of_a_second_is_given_up(void **state) {
	struct pace p = begin(RATE_MESSAGES, 1000, 0);
	uint64_t t = p.origin, later = t + RUN_RATE_BACKLOG_S * NSEC_PER_SEC;

	(void) state;
	assert_true(pace_due(&p, later)); /* exactly a second behind: still owed */
	assert_int_equal(p.skipped, 0);
	later += 5 * NSEC_PER_SEC;
	assert_true(pace_due(&p, later));
	/* Message 1 was due at 1 ms; 5.999 s of schedule are gone. */
	assert_int_equal(p.skipped, 5999);
	/* The schedule starts anew here. */
	assert_false(pace_due(&p, later + PERIOD - 1));
	assert_true(pace_due(&p, later + PERIOD));
	assert_true(pace_is_behind(&p, later + PERIOD));
}

static void test_behind_without_a_skip(void **state) {
	struct pace p = begin(RATE_MESSAGES, 1000, 0);
	uint64_t t = p.origin;

	(void) state;
	/* 100 messages in 200 ms are half of the rate. */
	for (int i = 0; i < 100; i++)
		assert_true(pace_due(&p, t + (uint64_t) i * 2 * PERIOD));
	assert_true(pace_is_behind(&p, t + 200 * PERIOD));
	/* A single message that took a while is no overload. */
	p = begin(RATE_MESSAGES, 1000, 0);
	assert_true(pace_due(&p, p.origin));
	assert_false(pace_is_behind(&p, p.origin + PERIOD * 3 / 2));
}

static void test_next_waits_and_counts_from_the_intended_time(void **state) {
	struct pace p = begin(RATE_MESSAGES, 1000, 0);
	uint64_t late;

	(void) state;
	for (uint64_t i = 0; i < 5; i++) {
		uint64_t now = pace_next(&p, &run, &late);

		assert_true(now - late == p.origin + i * PERIOD);
		assert_true(monotonic_ns() >= now);
	}
	/* Late: it does not wait, and the message still counts from its own time. */
	(void) usleep(4 * 1000);
	assert_true(pace_next(&p, &run, &late) - late == p.origin + 5 * PERIOD);
	assert_true(late >= 2 * PERIOD);
}

static void test_gap(void **state) {
	struct pace p = begin(RATE_NONE, 0, 2 * NSEC_PER_MSEC);

	(void) state;
	assert_true(pace_active(&p));
	for (int i = 0; i < 3; i++) {
		uint64_t late, before = monotonic_ns(), from = pace_next(&p, &run, &late);

		assert_true(from >= before + 2 * NSEC_PER_MSEC);
		assert_true(monotonic_ns() >= from);
		assert_true(late == 0);
	}
}

static void test_sleep_ends_before_the_next_turn_and_never_passes_an_event(void **state) {
	struct pace p = begin(RATE_MESSAGES, 1000, 0);
	uint64_t sleep, longest = 0;

	(void) state;
	assert_true(pace_due(&p, p.origin));
	run.next_event = UINT64_MAX;
	run.sleep_ns = NSEC_PER_SEC;
	/*
	 * At every moment of a period: there is time to spare for the timer's slack, and most of the period is slept.
	 */
	for (uint64_t t = 0; t < 2 * PERIOD; t += 1000) {
		sleep = pace_sleep_ns(&p, &run, p.origin + t);
		assert_true(sleep == 0 || t + sleep + 50 * NSEC_PER_USEC < PERIOD);
		longest = MAX(longest, sleep);
	}
	assert_true(longest > PERIOD * 8 / 10);
	run.next_event = p.origin + PERIOD / 2;
	assert_true(pace_sleep_ns(&p, &run, p.origin) == PERIOD / 2);
	assert_true(pace_sleep_ns(&p, &run, p.origin + PERIOD / 2) == 0);
	run.sleep_ns = PERIOD / 4;
	assert_true(pace_sleep_ns(&p, &run, p.origin) == PERIOD / 4);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unpaced),
		cmocka_unit_test(test_rate_units),
		cmocka_unit_test(test_due_times_lie_on_a_grid),
		cmocka_unit_test(test_a_pace_that_is_resumed_loses_nothing),
		cmocka_unit_test(test_a_late_one_catches_up),
		cmocka_unit_test(test_a_backlog_of_a_second_is_given_up),
		cmocka_unit_test(test_behind_without_a_skip),
		cmocka_unit_test(test_next_waits_and_counts_from_the_intended_time),
		cmocka_unit_test(test_gap),
		cmocka_unit_test(test_sleep_ends_before_the_next_turn_and_never_passes_an_event),
	};

	return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
