/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: bandwidth over several queue pairs of unequal speed is the sum of what each can do, as long as time is the
 * limit; a number of messages is dealt out in turn.
 * Over a made-up backend, whose time is the number of its polls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/run.h"

enum { QUEUE_PAIRS = 3, SLOTS = 576, POLLS = 7200, SLOW = 9, STUCK = 10000 };

/* Of which one message is executed in every `period`th poll. */
struct queue {
	uint32_t period;
	uint32_t ring[SLOTS];
	bool signalled[SLOTS];
	uint32_t posted, executed, told, complete;      /* messages ever; told: up to the last one that asked for it */
	uint32_t unsignalled;
};

static struct made_up {
	struct queue queues[QUEUE_PAIRS];
	uint32_t polls, empty;
	int open_list;          /* the queue pair whose doorbell waits for its next message; -1: none */
} m;

static struct job job;
static struct run r;
static bool busy[SLOTS];

static int made_up_post(struct session *s, const struct work *w) {
	const uint32_t number = job_channel(&job, w->slot);
	struct queue *q = m.queues + number;

	(void) s;
	assert_true(m.open_list < 0 || m.open_list == (int) number);
	if (q->posted - q->complete == job.outstanding) {
		m.open_list = -1; /* it rings for what it has */
		return -EAGAIN;
	}
	/* both ends know which message of its queue pair it is */
	assert_int_equal(w->slot, job_sequence(&job, number, q->posted) % SLOTS);
	q->ring[q->posted % SLOTS] = w->slot;
	q->signalled[q->posted % SLOTS] = ++q->unsignalled >= job.cq_moderation || w->flush;
	if (q->signalled[q->posted++ % SLOTS])
		q->unsignalled = 0;
	m.open_list = w->more ? (int) number : -1;
	return 0;
}

static int made_up_poll(struct session *s, struct completion *ret, unsigned max) {
	unsigned n = 0;

	(void) s;
	assert_int_equal(m.open_list, -1);
	if (++m.polls == POLLS && !r.phase.count)
		r.end = r.next_event = 0; /* the time is over */
	for (uint32_t i = 0; i < QUEUE_PAIRS; i++) {
		struct queue *q = m.queues + i;

		if (m.polls % q->period == 0 && q->executed < q->posted && q->signalled[q->executed++ % SLOTS])
			q->told = q->executed;
		for (; q->complete < q->told && n < max; n++)
			ret[n] = (struct completion) { .kind = COMPLETION_LOCAL, .channel = i,
						       .slot = q->ring[q->complete++ % SLOTS] };
	}
	m.empty = n ? 0 : m.empty + 1;
	assert_true(m.empty < STUCK);
	return (int) n;
}

static const struct backend made_up = {
	.facts = &backend_facts[BACKEND_VERBS], .post = made_up_post, .poll = made_up_poll,
};

/* Of `count` messages; 0: until the time is over. The first queue pair is the slow one. */
static void measure(uint32_t batch, uint32_t moderation, uint64_t count) {
	struct session session = { 0 };
	struct control control = { .timeout_ns = NSEC_PER_SEC };
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	control.fd = fds[0];
	job_defaults(&job);
	job.kind = KIND_BANDWIDTH;
	job.op = OP_WRITE;
	job.queue_pairs = QUEUE_PAIRS;
	job.outstanding = 16;
	job.batch = batch;
	job.cq_moderation = moderation;
	memset(busy, 0, sizeof(busy));
	memset(&m, 0, sizeof(m));
	m.open_list = -1;
	for (uint32_t i = 0; i < QUEUE_PAIRS; i++)
		m.queues[i].period = i ? 1 : SLOW;
	r = (struct run) {
		.job = &job, .backend = &made_up, .session = &session, .control = &control, .role = ROLE_CLIENT,
		.phase = { .size = 8, .count = count }, .control_every = UINT64_MAX, .busy = busy,
		.arena = { .slots = SLOTS, .window = SLOTS },
		.end = UINT64_MAX, .next_event = UINT64_MAX, .next_interval = UINT64_MAX, .next_window = UINT64_MAX,
		.next_look = UINT64_MAX,
	};
	assert_int_equal(clock_open(CLOCK_KIND_MONOTONIC, false, &r.clock), 0);
	assert_int_equal(bandwidth_client(&r), 0);
	assert_int_equal(r.outcome.messages, m.queues[0].posted + m.queues[1].posted + m.queues[2].posted);
	for (uint32_t i = 0; i < QUEUE_PAIRS; i++)
		assert_int_equal(m.queues[i].complete, m.queues[i].posted);
	(void) close(fds[0]);
	(void) close(fds[1]);
}

static void test_each_queue_pair_goes_at_its_own_speed(void **state) {
	static const uint32_t batches[] = { 1, 4, 6, 16 }, moderations[] = { 1, 3, 8, 16 };

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(batches); i++)
		for (size_t k = 0; k < ELEMENTSOF(moderations); k++) {
			measure(batches[i], moderations[k], 0);
			/* where a list is as long as the queue, the queue runs empty before each */
			assert_true(m.queues[0].posted >= POLLS / SLOW * 3 / 4);
			assert_in_range(m.queues[1].posted, POLLS * 3 / 4, POLLS + 2 * job.outstanding);
			assert_in_range(m.queues[2].posted, POLLS * 3 / 4, POLLS + 2 * job.outstanding);
		}
}

static void test_a_number_of_messages_is_dealt_out_in_turn(void **state) {
	(void) state;
	measure(4, 1, 1200);
	for (uint32_t i = 0; i < QUEUE_PAIRS; i++)
		assert_int_equal(m.queues[i].posted, 400);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_queue_pair_goes_at_its_own_speed),
		cmocka_unit_test(test_a_number_of_messages_is_dealt_out_in_turn),
	};

	return cmocka_run_group_tests_name("queue pairs of bw", tests, NULL, NULL);
}
