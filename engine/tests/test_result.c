/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: what a size claims to have put on the wire is counted once, in the right direction: devices' counters are held against it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "result.h"

enum { SIZE = 8, SENT = 100, RECEIVED = 30, THEIRS = 40 };

static const struct backend wire = { .facts = &backend_facts[BACKEND_TCP] }, solo = { .facts = &backend_facts[BACKEND_NULL] };
static struct job job;
static struct run run;

static struct result phase(const struct backend *b, enum op op, bool half_round_trip, bool bidirectional, bool again) {
	struct result r = { .run = &run, .size = SIZE };

	job_defaults(&job);
	job.op = op;
	job.bidirectional = bidirectional;
	run = (struct run) { .job = &job, .backend = b, .phase.half_round_trip = half_round_trip, .outcome = { .messages = SENT, .received = RECEIVED } };
	for (int i = 0; i <= again; i++)
		result_claim(&r, THEIRS);
	return r;
}

static void claims(enum op op, bool half_round_trip, bool bidirectional, uint64_t sent, uint64_t received) {
	struct result r = phase(&wire, op, half_round_trip, bidirectional, false);

	assert_true(r.path.known);
	assert_int_equal(r.path.sent_bytes, sent * SIZE);
	assert_int_equal(r.path.received_bytes, received * SIZE);
}

static void test_one_way(void **state) {
	(void) state;
	claims(OP_SEND, false, false, SENT, 0);
	claims(OP_SEND_IMM, false, false, SENT, 0);
	claims(OP_WRITE, false, false, SENT, 0);
	claims(OP_WRITE_IMM, false, false, SENT, 0);
	claims(OP_READ, false, false, 0, SENT);
	claims(OP_FETCH_ADD, false, false, SENT, SENT);
	claims(OP_COMPARE_SWAP, false, false, SENT, SENT);
}

static void test_ping_pong_moves_each_message_twice(void **state) {
	(void) state;
	claims(OP_SEND, true, false, SENT, SENT);
	claims(OP_WRITE, true, false, SENT, SENT);
}

/* Where a receiver counts, its count is what came; of one-sided operations only their initiator knows. */
static void test_both_ways(void **state) {
	(void) state;
	claims(OP_SEND, false, true, SENT, RECEIVED);
	claims(OP_WRITE_IMM, false, true, SENT, RECEIVED);
	claims(OP_WRITE, false, true, SENT, THEIRS);
	claims(OP_READ, false, true, THEIRS, SENT);
}

static void test_phases_add_up(void **state) {
	struct result r = phase(&wire, OP_SEND, false, false, true);

	(void) state;
	assert_int_equal(r.path.sent_bytes, 2 * SENT * SIZE);
}

static void test_no_network_claims_nothing(void **state) {
	struct result r = phase(&solo, OP_SEND, false, false, false);

	(void) state;
	assert_false(r.path.known);
	assert_int_equal(r.path.sent_bytes, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_way),
		cmocka_unit_test(test_ping_pong_moves_each_message_twice),
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_phases_add_up),
		cmocka_unit_test(test_no_network_claims_nothing),
	};

	return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
