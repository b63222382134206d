/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: a read that brings nothing is found, however often its place was right before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/run.h"

enum { SIZE = 1000, TURNS = 6 };

static void test_a_read_that_brings_nothing_is_found(void **state) {
	const struct job job = { .kind = KIND_BANDWIDTH, .op = OP_READ, .verify = true, .n_sizes = 1,
				 .sizes = { SIZE }, .outstanding = 2, .queue_pairs = 1, .batch = 1 };

	(void) state;
	for (uint64_t lost = 0; lost < TURNS; lost++) {
		struct session session = { 0 };
		struct run r = { .job = &job, .session = &session, .phase.size = SIZE };

		assert_int_equal(arena_open(&r.arena, SIZE, 2, NULL, true, NULL), 0);
		for (uint64_t turn = 0; turn < TURNS; turn++) {
			struct work w = { .op = OP_READ, .size = SIZE, .slot = 1 };

			/* More than once where a backend had no room for it at first. */
			for (uint64_t k = 0; k <= turn % 3; k++)
				assert_int_equal(verify_fill(&r, 1, 2 * turn + 1, &w), 0);
			if (turn != lost)
				pattern_fill(arena_rx_view(&r.arena, 1), SIZE, 1);
			assert_int_equal(verify_local(&r, 1, 2 * turn + 1), 0);
			assert_int_equal(r.outcome.integrity.located, turn >= lost);
		}
		assert_true(r.outcome.integrity.bad_bytes > SIZE * 9 / 10);
		assert_int_equal(r.outcome.integrity.first.message, 2 * lost + 1);
		arena_close(&r.arena);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_read_that_brings_nothing_is_found),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
