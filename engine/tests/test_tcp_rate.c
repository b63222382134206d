/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: message rates of sends over tcp. Both ends in this process, over loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tcp_pair.h"

/* A send names no place: it lands in the target's next one, and may be no longer. */
static void test_sends_land_in_the_places_of_their_target(void **state) {
	enum { PLACES = 5, MESSAGES = 23, SIZE = 1000 };
	struct job job = transfer_job(OP_SEND);
	uint64_t at = 0;
	uint32_t done = 0;

	(void) state;
	job.kind = KIND_RATE;
	open_pair(&job, (uint64_t) MESSAGES * SIZE);
	for (int phase = 0; phase < 2; phase++) {
		memset(memory(ROLE_SERVER), UNTOUCHED, pair.length);
		/* backwards, and in slots that do not begin at 0 */
		for (uint32_t i = 0; i < PLACES; i++)
			hooks(ROLE_SERVER)->lanes->place(pair.ends[ROLE_SERVER].session, 7 + i, 0,
							 (uint64_t) (PLACES - 1 - i) * SIZE, SIZE);
		for (uint32_t i = done; i < (uint32_t) (phase + 1) * MESSAGES; i++) {
			place(i, (uint64_t) (i % MESSAGES) * SIZE, SIZE);
			assert_int_equal(post(i, i % 3 == 0), 0);
		}
		done = (uint32_t) (phase + 1) * MESSAGES;
		finish((uint32_t) phase * MESSAGES, done);
		for (uint32_t i = MESSAGES - PLACES; i < MESSAGES; i++) {
			at = (uint64_t) (PLACES - 1 - i % PLACES) * SIZE;
			assert_memory_equal(memory(ROLE_SERVER) + at, memory(ROLE_CLIENT) + (uint64_t) i * SIZE, SIZE);
		}
		assert_int_equal(memory(ROLE_SERVER)[PLACES * SIZE], UNTOUCHED);
	}
	place(done, 0, SIZE + 1);
	assert_int_equal(post(done, false), 0);
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
