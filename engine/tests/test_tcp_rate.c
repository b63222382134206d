/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: message rates of sends over tcp. Both ends in this process, over loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tcp_pair.h"

/* A send names no place: it lands in the next one of its queue pair, and may be no longer. */
static void test_sends_land_in_the_places_of_their_target(void **state) {
	enum { PLACES = 5, MESSAGES = 23, SIZE = 1000 };
	struct job job = transfer_job(OP_SEND);
	uint8_t *own;

	(void) state;
	job.kind = KIND_RATE;
	job.sizes[0] = SIZE;
	job.queue_pairs = 2;    /* of which this is the second */
	job.outstanding = PLACES;
	open_pair(&job, (uint64_t) MESSAGES * SIZE);
	assert_int_equal(job_buffer(&job), 2 * PLACES * SIZE);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		place(i, (uint64_t) i * SIZE, SIZE);
		while (post(i, i % 3 == 0 && i + 1 < MESSAGES) == -EAGAIN)
			serve();
		finish(i, i + 1);
	}
	own = memory(ROLE_SERVER) + PLACES * SIZE;
	for (uint32_t i = MESSAGES - PLACES; i < MESSAGES; i++)
		assert_memory_equal(own + (uint64_t) (i % PLACES) * SIZE, memory(ROLE_CLIENT) + (uint64_t) i * SIZE,
				    SIZE);
	assert_int_equal(own[-1], UNTOUCHED);
	assert_int_equal(own[PLACES * SIZE], UNTOUCHED);
	place(MESSAGES, 0, SIZE + 1);
	assert_int_equal(post(MESSAGES, false), 0);
	refused(ROLE_SERVER, -EPROTO);
	close_pair();
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sends_land_in_the_places_of_their_target),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
