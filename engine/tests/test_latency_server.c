/* SPDX-License-Identifier: Apache-2.0 */
/* The answering end of a ping-pong, over a backend that hands out what a test has written down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "measure/run.h"

enum { ROUNDS = 4, EMPTY_MAX = 100 };

/* What the backend hands out, batch by batch; it ends with an empty one. */
struct script {
	const struct completion (*batches)[3];
	unsigned next, empty;
	uint32_t answers[ROUNDS];
	unsigned answered;
};

static struct script script;

/* A run that waits for what has been handed out already would wait for ever: an error ends it. */
static int scripted_poll(struct session *s, struct completion *ret, unsigned max) {
	const struct completion *batch = script.batches[script.next];
	int n = 0;

	(void) s;
	(void) max;
	for (; n < 3 && batch[n].channel; n++)
		ret[n] = batch[n];
	if (n == 0)
		return ++script.empty < EMPTY_MAX ? 0 : -ETIMEDOUT;
	script.next++;
	return n;
}

static int scripted_post(struct session *s, const struct work *w) {
	(void) s;
	assert_true(script.answered < ROUNDS);
	script.answers[script.answered++] = w->slot;
	return 0; /* complete later */
}

static int scripted_receive(struct session *s, uint32_t slot, uint64_t size) {
	(void) s;
	(void) slot;
	(void) size;
	return 0;
}

#define RECEIVED(n) { .kind = COMPLETION_RECEIVE, .slot = (n), .channel = 1 }
#define SENT(n) { .kind = COMPLETION_LOCAL, .slot = (n), .channel = 1 }

static int serve(const struct completion (*batches)[3]) {
	static const struct backend backend = {
		.facts = &backend_facts[BACKEND_TCP], .poll = scripted_poll, .post = scripted_post,
		.post_receive = scripted_receive,
	};
	struct session session = { 0 };
	struct job job;
	bool busy[2] = { false }, lent[2] = { true, true };
	struct run r = { .job = &job, .backend = &backend, .session = &session, .role = ROLE_SERVER,
			 .phase = { .half_round_trip = true, .size = 8 }, .peer_finished = true, .peer_count = ROUNDS,
			 .control_every = UINT64_MAX, .busy = busy, .lent = lent,
			 .arena = { .slots = 2, .window = 2 } };

	job_defaults(&job);
	script = (struct script) { .batches = batches };
	return latency_server(&r);
}

static void check_answers(void) {
	static const uint32_t in_turn[ROUNDS] = { 0, 1, 0, 1 };

	assert_int_equal(script.answered, ROUNDS);
	assert_memory_equal(script.answers, in_turn, sizeof(in_turn));
}

static void test_answers_in_turn(void **state) {
	static const struct completion batches[][3] = {
		{ RECEIVED(0) }, { RECEIVED(1), SENT(0) }, { SENT(1), RECEIVED(0) }, { SENT(0) }, { RECEIVED(1) },
		{ { 0 } },
	};

	(void) state;
	assert_int_equal(serve(batches), 0);
	check_answers();
}

/* An acknowledgement may be slower than the message after the next: then both come at once, and the message first. */
static void test_an_answer_does_not_wait_for_what_came_with_its_message(void **state) {
	static const struct completion batches[][3] = {
		{ RECEIVED(0) }, { RECEIVED(1) }, { RECEIVED(0), SENT(0), SENT(1) }, { RECEIVED(1) }, { { 0 } },
	};

	(void) state;
	assert_int_equal(serve(batches), 0);
	check_answers();
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_in_turn),
		cmocka_unit_test(test_an_answer_does_not_wait_for_what_came_with_its_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
