/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: the driver of message rates keeps queue pairs full with one doorbell a list and few completions, loses and
 * invents no message, and never sends what the target has no receive for.
 * Over the fake of libibverbs (fake_verbs.h): no proof of the verbs path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "measure/transfer.h"
#include "verbs_traffic.h"

/* One lane of one thread over the pair's client, whose target is served between two of its turns. */
static struct transfer transfer;
static struct lane lane;
static struct session *sessions[1];
static struct backend backend;
static uint32_t serve_every, turns;     /* the target looks at its queue in every nth turn */
static uint32_t empty_turns;            /* in a row: the fake completes at once, so many mean that nothing will come */

/* The linker sends all calls from other files here (tests.mk). */
static unsigned laid_out;
void __wrap_job_rate_places(const struct job *job, struct places *ret);
void __real_job_rate_places(const struct job *job, struct places *ret);

void __wrap_job_rate_places(const struct job *job, struct places *ret) {
	laid_out++;
	__real_job_rate_places(job, ret);
}

static struct job rate_job(enum op op, uint64_t messages) {
	struct job job = verbs_job(op);

	job.kind = KIND_RATE;
	job.verify = false;
	job.iterations = messages;
	job.outstanding = 64;
	job.batch = 8;
	job.cq_moderation = 16;
	job_complete_lanes(&job);
	return job;
}

static void serve_target(void) {
	struct completion c[RUN_COMPLETIONS];
	int n;

	do
		n = take(ROLE_SERVER, c, RUN_COMPLETIONS);
	while (n > 0);
	if (n < 0)
		fail_msg("%s", failure_text());
}

/* The client's poll, and now and then the target's. */
static int poll_both(struct session *s, struct completion *ret, unsigned max) {
	int n;

	if (++turns % serve_every == 0)
		serve_target();
	n = pair.backend->poll(s, ret, max);
	empty_turns = n == 0 ? empty_turns + 1 : 0;
	if (empty_turns > 1000)
		fail_msg("stands still after %u of %u messages", (unsigned) lane.batches, (unsigned) lane.posted);
	return n;
}

static void open_rate(const struct job *job, bool wr) {
	fake.devices[0].no_wr = fake.devices[1].no_wr = !wr;
	open_pair(job);
	backend = *pair.backend;
	backend.poll = poll_both;
	serve_every = 1;
	turns = empty_turns = 0;
	sessions[0] = pair.ends[ROLE_CLIENT].session;
	transfer = (struct transfer) { .job = *job, .n_lanes = 1, .n_pairs = 1, .goal = job->iterations };
	transfer.lanes = calloc(1, sizeof(struct lane *));
	transfer.lanes[0] = &lane;
	shape_of(job, job->sizes[0], 1, &transfer.shape);
	lane = (struct lane) {
		.backend = &backend, .sessions = sessions, .n_sessions = 1, .n_channels = job->queue_pairs,
		.depth = job->outstanding, .op = job->op, .transfer = &transfer, .job = *job,
	};
	lane.channels = calloc(job->queue_pairs, sizeof(*lane.channels));
	lane.run = (struct run) { .job = &lane.job, .role = ROLE_CLIENT, .session = sessions[0], .backend = &backend };
	assert_int_equal(clock_open(CLOCK_KIND_MONOTONIC, false, &lane.run.clock), 0);
	for (uint32_t i = 0; i < job->queue_pairs; i++)
		lane.channels[i] = (struct channel) { .session = sessions[0], .in_session = i };
	lane_prepare(&lane);
}

static int drive_rate(void) {
	struct thread t = { .transfer = &transfer };

	lane.batches = 0;
	return rate_drive(&t);
}

static void close_rate(void) {
	free(lane.channels);
	free(transfer.lanes);
	close_pair();
}

static unsigned doorbells(void) {
	return fake.calls[FAKE_POST_SEND] + fake.calls[FAKE_WR_COMPLETE];
}

/* 100 messages of each of two queue pairs: 12 lists of 8 and one of 4, and 7 completions: one each 16, and the last. */
static void test_lists_ring_one_doorbell_and_few_complete(void **state) {
	static const enum op ops[] = { OP_WRITE, OP_READ, OP_SEND };

	for (int wr = 0; wr < 2; wr++)
		for (size_t i = 0; i < ELEMENTSOF(ops); i++) {
			struct job job = rate_job(ops[i], 200);
			unsigned credits;

			assert_int_equal(setup(state), 0);
			job.queue_pairs = 2;
			open_rate(&job, wr);
			assert_int_equal(drive_rate(), 0);
			assert_int_equal(lane.batches, 200);
			assert_int_equal(lane.moved_batches, 200);
			/* 128 receives, of which the target says each quarter: 100 messages make 3 times 32. */
			credits = ops[i] == OP_SEND ? 2 * 3 : 0;
			assert_int_equal(doorbells(), 2 * 13 + credits);
			assert_int_equal(fake.sent, 2 * 7 + credits);
			assert_string_equal(sessions[0]->post_api, wr ? "ibv_wr" : "ibv_post_send");
			close_rate();
		}
}

/* Each message comes from its place, and lands in that of the other end: the buffer of the queue pairs, once round. */
static void test_messages_use_all_places(void **state) {
	(void) state;
	for (int wr = 0; wr < 2; wr++)
		for (int read = 0; read < 2; read++) {
			struct job job = rate_job(read ? OP_READ : OP_WRITE, 128);
			uint8_t *from, *to;
			uint64_t bytes;

			assert_int_equal(setup(state), 0);
			job.queue_pairs = 2;
			open_rate(&job, wr);
			bytes = job_buffer(&job);
			from = pair.ends[read ? ROLE_SERVER : ROLE_CLIENT].arena.tx;
			to = pair.ends[read ? ROLE_CLIENT : ROLE_SERVER].arena.tx;
			for (uint64_t k = 0; k < bytes; k++)
				from[k] = (uint8_t) (k % 251 + 1);
			assert_int_equal(drive_rate(), 0);
			assert_memory_equal(to, from, bytes);
			close_rate();
		}
}

/* The same of a footprint: a message for each of its places, and nothing between them. */
static void test_a_footprint_is_the_same_at_both_ends(void **state) {
	static const enum op ops[] = { OP_WRITE, OP_READ, OP_SEND };

	for (size_t i = 0; i < ELEMENTSOF(ops); i++) {
		struct job job = rate_job(ops[i], 1);
		const bool read = ops[i] == OP_READ;
		uint8_t *from, *to;
		uint64_t landed = 0;
		struct places p;

		assert_int_equal(setup(state), 0);
		job.queue_pairs = 2;
		job.sizes[0] = 3000;
		job.footprint = UINT64_C(2) * 64 * 4096 + 100; /* of which the last bytes are of no use */
		job_rate_places(&job, &p);
		assert_int_equal(p.n, 64);
		assert_int_equal(p.stride, 63 * 64);
		job.iterations = 2 * 64;
		open_rate(&job, true);
		from = pair.ends[read ? ROLE_SERVER : ROLE_CLIENT].arena.tx;
		to = pair.ends[read ? ROLE_CLIENT : ROLE_SERVER].arena.tx;
		for (uint64_t k = 0; k < job.footprint; k++)
			from[k] = (uint8_t) (k % 251 + 1);
		assert_int_equal(drive_rate(), 0);
		serve_target();
		for (uint64_t k = 0; k < job.footprint; k++) {
			landed += to[k] != 0;
			assert_true(to[k] == 0 || to[k] == from[k]);
		}
		assert_int_equal(landed, job.iterations * job.sizes[0]);
		close_rate();
	}
}

/* Places are a power of two: a list that ended with them would be a short one, which no moderation counts on. */
static void test_lists_stay_whole_over_a_footprint(void **state) {
	static const uint32_t batches[] = { 1, 3, 5, 8, 24, 63 };
	static const enum op ops[] = { OP_WRITE, OP_READ, OP_SEND };

	for (size_t i = 0; i < ELEMENTSOF(ops) * ELEMENTSOF(batches); i++)
		for (uint32_t lists = 1; lists < 4; lists++)
			for (uint32_t spare = 0; spare < 2; spare++) {
				const uint32_t batch = batches[i / ELEMENTSOF(ops)];
				struct job job = rate_job(ops[i % ELEMENTSOF(ops)], 4096);

				assert_int_equal(setup(state), 0);
				job.queue_pairs = 2;
				job.batch = batch;
				job.outstanding = lists * batch + MIN(spare, batch - 1);
				/* as few completions as are accepted, and one more than for each list */
				job.cq_moderation = spare ? job_rate_depth(&job) : (lists - 1) * batch + 1;
				job.footprint = UINT64_C(2) * 128 * 64;
				open_rate(&job, true);
				assert_int_equal(drive_rate(), 0);
				assert_int_equal(lane.batches, 4096);
				close_rate();
			}
}

/* The fake makes a reliable sender wait where no receive is there: then something would be left unexecuted. */
static void test_sends_wait_for_credits(void **state) {
	static const uint32_t outstanding[] = { 1, 2, 3, 5, 7, 64, 200 };

	for (size_t i = 0; i < ELEMENTSOF(outstanding); i++)
		for (uint32_t every = 1; every < 40; every += 13) {
			struct job job = rate_job(OP_SEND, 3000);

			assert_int_equal(setup(state), 0);
			job.outstanding = outstanding[i];
			job.batch = MIN(job.outstanding, 8u);
			job.cq_moderation = 1;
			open_rate(&job, true);
			serve_every = every;
			assert_int_equal(drive_rate(), 0);
			serve_target();
			assert_int_equal(lane.batches, 3000);
			assert_int_equal(fake.not_ready, 0);
			/* again: what was lent and told goes on */
			assert_int_equal(drive_rate(), 0);
			assert_int_equal(lane.batches, 3000);
			assert_int_equal(fake.not_ready, 0);
			close_rate();
		}
}

/* What a loop over sizes and places finds is the same for each list of receives. */
static void test_the_layout_is_found_once(void **state) {
	struct job job = rate_job(OP_SEND, 3000);

	(void) state;
	job.footprint = 1 << 20;
	open_rate(&job, true);
	laid_out = 0;
	assert_int_equal(drive_rate(), 0);
	serve_target();
	assert_int_equal(lane.batches, 3000);
	assert_int_equal(laid_out, 0);
	close_rate();
}

/* A sender that has used up its credit has nothing under way: what wakes it up later is only its next message. */
static void test_a_credit_is_used_before_sleeping(void **state) {
	for (int armed = 0; armed < 2; armed++) {
		struct job job = rate_job(OP_SEND, 200);
		struct list list = { .op = OP_SEND, .n = 8, .size = 64, .signal = true };
		struct completion c[RUN_COMPLETIONS];
		struct session *s;

		assert_int_equal(setup(state), 0);
		job.completion = COMPLETION_EVENT;
		open_rate(&job, true);
		s = sessions[0];
		if (armed) {
			assert_int_equal(pair.backend->wait(s, c, RUN_COMPLETIONS, 0), 0);
			assert_int_equal(fake.calls[FAKE_REQ_NOTIFY], 1);
		}
		while (pair.backend->lanes->post_list(s, &list) > 0)
			(void) pair.backend->poll(s, c, RUN_COMPLETIONS);
		while (pair.backend->poll(s, c, RUN_COMPLETIONS) > 0)
			;
		serve_target(); /* and says how much it has lent */
		fake.calls[FAKE_REQ_NOTIFY] = 0;
		assert_int_equal(pair.backend->wait(s, c, RUN_COMPLETIONS, 0), 0);
		assert_true(pair.backend->lanes->post_list(s, &list) > 0);
		/* where it slept, it has taken the event for what came */
		assert_int_equal(fake.calls[FAKE_REQ_NOTIFY], 0);
		assert_int_equal(verbs_session(s)->armed, armed);
		close_rate();
	}
}

/* A credit only ever grows, by no more than there are receives: 128 of each queue pair. */
static void test_an_impossible_credit_is_refused(void **state) {
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t lent;
	} bad[] = {
		{ IBV_WR_SEND, 129 }, { IBV_WR_SEND_WITH_IMM, 0 }, { IBV_WR_SEND_WITH_IMM, 127 },
		{ IBV_WR_SEND_WITH_IMM, 128 }, { IBV_WR_SEND_WITH_IMM, 257 }, { IBV_WR_SEND_WITH_IMM, UINT32_MAX },
	};

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		struct ibv_send_wr *failed, wr = { .opcode = bad[i].opcode, .send_flags = IBV_SEND_SIGNALED,
						   .imm_data = htonl(bad[i].lent) };
		struct job job = rate_job(OP_SEND, 8);
		struct completion c[RUN_COMPLETIONS];

		assert_int_equal(setup(state), 0);
		open_rate(&job, true);
		assert_int_equal(ibv_post_send(verbs_session(pair.ends[ROLE_SERVER].session)->queues[0].qp, &wr,
					       &failed), 0);
		assert_int_equal(pair.backend->poll(sessions[0], c, RUN_COMPLETIONS), -EPROTO);
		assert_int_equal(failure_code(), EXIT_PEER);
		assert_non_null(strstr(failure_text(), "lent an impossible number of receives"));
		close_rate();
	}
}

static void test_messages_before_a_failure_are_counted(void **state) {
	for (int wr = 0; wr < 2; wr++) {
		struct job job = rate_job(OP_WRITE, 200);

		assert_int_equal(setup(state), 0);
		open_rate(&job, wr);
		fake.next_status = IBV_WC_RETRY_EXC_ERR;
		fake.status_skip = 45;
		assert_true(drive_rate() < 0);
		assert_int_equal(lane.batches, 45);
		assert_int_equal(failure_code(), EXIT_PEER);
		close_rate();
	}
}

/* What a queue pair takes inline is as much as its messages have, or nothing. */
static void test_inline_is_what_the_messages_have(void **state) {
	(void) state;
	for (uint64_t size = 64; size <= 4096; size *= 64) {
		struct job job = rate_job(OP_WRITE, 8);

		assert_int_equal(setup(state), 0);
		job.sizes[0] = size;
		open_rate(&job, true);
		assert_int_equal(sessions[0]->inline_bytes, size == 64 ? 64 : 0);
		close_rate();
	}
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_lists_ring_one_doorbell_and_few_complete, setup),
		cmocka_unit_test_setup(test_a_footprint_is_the_same_at_both_ends, setup),
		cmocka_unit_test_setup(test_messages_use_all_places, setup),
		cmocka_unit_test_setup(test_lists_stay_whole_over_a_footprint, setup),
		cmocka_unit_test_setup(test_sends_wait_for_credits, setup),
		cmocka_unit_test_setup(test_the_layout_is_found_once, setup),
		cmocka_unit_test_setup(test_a_credit_is_used_before_sleeping, setup),
		cmocka_unit_test_setup(test_an_impossible_credit_is_refused, setup),
		cmocka_unit_test_setup(test_messages_before_a_failure_are_counted, setup),
		cmocka_unit_test_setup(test_inline_is_what_the_messages_have, setup),
	};

	return cmocka_run_group_tests_name("rates over the fake of libibverbs", tests, NULL, NULL);
}
