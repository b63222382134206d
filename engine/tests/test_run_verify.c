/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: a read that brings nothing is found, however often its place was right before; and a write that is seen
 * arriving is right once all of it has come, in whatever order.
 */
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

/* A device whose last packet comes first: each look at its memory sees one more, up to `packets`. */
static struct {
	unsigned looks, packets;
} late;

enum { PACKET = 256 };

static int copy_late(struct gpu *g, void *to, const void *from, size_t length, enum gpu_direction direction) {
	(void) g;
	if (direction == GPU_COPY_OUT) {
		const size_t come = MIN(late.looks++, late.packets) * PACKET;

		memcpy(to, from, MIN(come, length - 1));
		((uint8_t *) to)[length - 1] = ((const uint8_t *) from)[length - 1];
	}
	return 0;
}

static const struct gpu_runtime late_runtime = { .copy = copy_late };

static void test_a_write_counts_once_all_of_it_has_come(void **state) {
	const struct job job = { .kind = KIND_LATENCY, .op = OP_WRITE, .verify = true, .n_sizes = 1,
				 .sizes = { SIZE }, .outstanding = 1, .queue_pairs = 1, .batch = 1 };
	struct gpu gpu = { .runtime = &late_runtime };

	(void) state;
	for (unsigned whole = 0; whole < 2; whole++) {
		struct session session = { .stamps = true, .level = LEVEL_TRANSMIT };
		struct run r = { .job = &job, .session = &session, .phase = { .size = SIZE, .half_round_trip = true } };
		uint8_t memory[SIZE];

		assert_int_equal(arena_open(&r.arena, SIZE, 2, NULL, true, NULL), 0);
		pattern_fill(memory, SIZE, 7);
		memory[SIZE - 1] = 8; /* the stamp */
		r.arena.view_rx = r.arena.rx;
		r.arena.rx = memory - arena_offset(&r.arena, 1);
		r.arena.regions[r.arena.n_regions - 1].gpu = &gpu;
		late.looks = 0;
		late.packets = whole ? (SIZE + PACKET - 1) / PACKET : 1;
		assert_int_equal(verify_received(&r, 1, 7), 0);
		assert_int_equal(r.outcome.integrity.checked_bytes, SIZE);
		assert_int_equal(r.outcome.integrity.located, !whole);
		if (whole)
			assert_int_equal(late.looks, late.packets + 1);
		else
			assert_int_equal(r.outcome.integrity.first.offset, PACKET);
		r.arena.regions[r.arena.n_regions - 1].gpu = NULL;
		arena_close(&r.arena);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_read_that_brings_nothing_is_found),
		cmocka_unit_test(test_a_write_counts_once_all_of_it_has_come),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
