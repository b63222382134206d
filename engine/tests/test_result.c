/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: what a size claims to have put on the wire is counted once, in the right direction:
 * devices' counters are held against it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/transfer_result.h"

enum { SIZE = 8, SENT = 100, RECEIVED = 30, THEIRS = 40 };

static const struct backend wire = { .facts = &backend_facts[BACKEND_TCP] },
	solo = { .facts = &backend_facts[BACKEND_NULL] };
static struct job job;
static struct run run;

static struct result phase(const struct backend *b, enum op op, bool half_round_trip, bool bidirectional, bool again) {
	struct result r = { .run = &run, .size = SIZE };

	job_defaults(&job);
	job.op = op;
	job.bidirectional = bidirectional;
	run = (struct run) { .job = &job, .backend = b, .phase.half_round_trip = half_round_trip,
			     .outcome = { .messages = SENT, .received = RECEIVED } };
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

/* 1 MB in 100 us are 80 Gb/s. */
static struct result bandwidth(double rate_gbit_s, bool bidirectional) {
	static struct session session;
	struct result r = phase(&wire, OP_SEND, false, bidirectional, false);

	job.kind = KIND_BANDWIDTH;
	session = (struct session) { .rate_gbit_s = rate_gbit_s };
	run.session = &session;
	run.outcome.elapsed_ns = 100 * NSEC_PER_USEC;
	r.bytes = 1000000;
	return r;
}

static void test_percent_of_the_link(void **state) {
	struct result r = bandwidth(100, false);

	(void) state;
	assert_true(result_link_percent(&r) == 80);
	r = bandwidth(100, true); /* the sum of both directions, of which the link has 100 Gb/s each */
	assert_true(result_link_percent(&r) == 40);
	r = bandwidth(0, false);
	assert_true(result_link_percent(&r) < 0);
	r.transfer = &(struct transfer_view) { .rate_gbit_s = 400 };
	assert_true(result_link_percent(&r) == 20);
}

/* What a writer prints for one result: standard output is a file meanwhile. */
static void table_of(const struct result *r, char *ret, size_t size) {
	int saved = dup(STDOUT_FILENO);
	FILE *f = tmpfile();

	assert_non_null(f);
	(void) fflush(stdout);
	assert_true(dup2(fileno(f), STDOUT_FILENO) >= 0);
	write_table_header("h", r->run, json_null());
	write_table_result(r);
	assert_true(dup2(saved, STDOUT_FILENO) >= 0);
	(void) close(saved);
	rewind(f);
	ret[fread(ret, 1, size - 1, f)] = '\0';
	(void) fclose(f);
}

static void test_table_has_the_percent_where_the_rate_is_known(void **state) {
	struct result r = bandwidth(100, false);
	char text[1024];

	(void) state;
	table_of(&r, text, sizeof(text));
	assert_non_null(strstr(text, "   Rate[msg/s]     Link[%]\n"));
	assert_non_null(strstr(text, "        80.0\n"));
	r = bandwidth(0, false);
	table_of(&r, text, sizeof(text));
	assert_non_null(strstr(text, "   Rate[msg/s]\n"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_way),
		cmocka_unit_test(test_ping_pong_moves_each_message_twice),
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_phases_add_up),
		cmocka_unit_test(test_no_network_claims_nothing),
		cmocka_unit_test(test_percent_of_the_link),
		cmocka_unit_test(test_table_has_the_percent_where_the_rate_is_known),
	};

	return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
