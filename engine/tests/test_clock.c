/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: rates that differ are found, and the clock of the hot loop goes as fast as CLOCK_MONOTONIC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/message.h"

static void test_rates(void **state) {
	const double same[] = { 0.4, 0.4002, 0.39995 }, other[] = { 0.4, 0.4, 0.41 };
	double spread;

	(void) state;
	assert_true(clock_rates_agree(same, ELEMENTSOF(same), &spread));
	assert_true(spread > 0.0006 && spread < 0.0007);
	assert_false(clock_rates_agree(other, ELEMENTSOF(other), &spread));
	assert_true(spread > 0.024 && spread < 0.026);
}

/* 1 %: the readings of two clocks are apart by as long as this process may be interrupted between them. */
static void test_cycles(void **state) {
	struct clock c = { .cycles = false };
	uint64_t ticks, ns;

	(void) state;
	failure_reset();
	if (clock_open(CLOCK_KIND_CYCLES, false, &c) < 0) {
		assert_int_equal(failure_code(), EXIT_HOST);
		assert_false(c.cycles);
		skip();
	}
	ticks = clock_ticks(&c);
	ns = monotonic_ns();
	while (monotonic_ns() - ns < 100 * NSEC_PER_MSEC)
		;
	ticks = clock_ticks(&c) - ticks;
	ns = monotonic_ns() - ns;
	assert_true(clock_ns(&c, ticks) > ns / 100 * 99 && clock_ns(&c, ticks) < ns / 100 * 101 + 20 * NSEC_PER_MSEC);
}

static void test_monotonic(void **state) {
	struct clock c;

	(void) state;
	assert_int_equal(clock_open(CLOCK_KIND_MONOTONIC, false, &c), 0);
	assert_int_equal(clock_ns(&c, 12345), 12345);
}

int main(void) {
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rates), cmocka_unit_test(test_cycles),
					    cmocka_unit_test(test_monotonic) };

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
