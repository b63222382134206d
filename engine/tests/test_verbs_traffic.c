/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: queue pairs are made as each connection needs them, every message is accounted for once whatever the moderation and the post
 * lists, and whatever fails is said and leaves nothing behind. Over the fake of libibverbs (fake_verbs.h): no proof of the verbs path.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verbs_pair.h"

static struct verbs_pair pair;

static int setup(void **state) {
	(void) state;
	verbs_pair_devices();
	return 0;
}

static void open_pair(const struct job *job) {
	if (verbs_pair_open(&pair, job) < 0)
		fail_msg("%s", failure_text());
}

static void close_pair(void) {
	verbs_pair_close(&pair);
	assert_int_equal(fake.live, 0);
	assert_int_equal(fake.violations, 0);
}

static uint8_t *tx(enum role role, uint32_t slot) {
	return arena_tx(&pair.ends[role].arena, slot);
}

static uint8_t *rx(enum role role, uint32_t slot) {
	return arena_rx(&pair.ends[role].arena, slot);
}

static void lend_all(enum role role) {
	for (uint32_t slot = 0; op_takes_receive(pair.job.op) && slot < pair.ends[role].arena.slots; slot++)
		assert_int_equal(pair.backend->post_receive(pair.ends[role].session, slot, pair.ends[role].arena.slot_bytes), 0);
}

static int take(enum role role, struct completion *ret, unsigned max) {
	return pair.backend->poll(pair.ends[role].session, ret, max);
}

/* What a stream of `count` messages does: slots in turn, each posted again only when it is complete. */
struct tally {
	uint64_t local, received;
	uint64_t next_arrival[JOB_QUEUE_PAIRS_MAX];
};

static void take_all(struct tally *t, bool *busy) {
	struct completion c[3]; /* few, so that what does not fit must be kept for the next call */
	int n;

	while ((n = take(ROLE_CLIENT, c, ELEMENTSOF(c))) > 0)
		for (int i = 0; i < n; i++) {
			assert_int_equal(c[i].kind, COMPLETION_LOCAL);
			assert_true(busy[c[i].slot]);
			busy[c[i].slot] = false;
			t->local++;
		}
	assert_true(n >= 0);
	while ((n = take(ROLE_SERVER, c, ELEMENTSOF(c))) > 0)
		for (int i = 0; i < n; i++) {
			uint64_t sequence = job_sequence(&pair.job, c[i].channel, t->next_arrival[c[i].channel]++);
			uint32_t sent = (uint32_t) (sequence % pair.ends[ROLE_CLIENT].arena.slots);

			assert_int_equal(c[i].kind, COMPLETION_RECEIVE);
			if (!fake.lose_every)
				assert_memory_equal(rx(ROLE_SERVER, c[i].slot), tx(ROLE_CLIENT, sent), pair.job.sizes[0]);
			t->received++;
			assert_int_equal(pair.backend->post_receive(pair.ends[ROLE_SERVER].session, c[i].slot,
								    pair.ends[ROLE_SERVER].arena.slot_bytes), 0);
		}
	assert_true(n >= 0);
}

static bool more_follows(uint64_t i, uint64_t count, const bool *busy, uint32_t slots) {
	uint32_t slot = (uint32_t) (i % slots), next = (uint32_t) ((i + 1) % slots);

	return i + 1 < count && !busy[next] && job_channel(&pair.job, slot) == job_channel(&pair.job, next) &&
	       (i + 1) % pair.job.batch != 0;
}

static struct tally stream(uint64_t count) {
	uint32_t slots = pair.ends[ROLE_CLIENT].arena.slots;
	bool *busy = calloc(slots, sizeof(*busy));
	struct tally t = { 0 };

	lend_all(ROLE_SERVER);
	for (uint32_t slot = 0; slot < slots; slot++)
		memset(tx(ROLE_CLIENT, slot), (int) (slot * 7 + 1), pair.job.sizes[0]);
	for (uint64_t i = 0; i < count; i++) {
		struct work w = { .op = pair.job.op, .slot = (uint32_t) (i % slots), .size = pair.job.sizes[0], .operand = 1 };
		int e;

		for (unsigned turns = 0; busy[w.slot] || i - t.local >= pair.job.outstanding; turns++) {
			assert_true(turns < 1000);
			take_all(&t, busy);
		}
		w.more = more_follows(i, count, busy, slots) && i + 1 - t.local < pair.job.outstanding;
		w.flush = i + pair.job.queue_pairs * pair.job.batch >= count;
		while ((e = pair.backend->post(pair.ends[ROLE_CLIENT].session, &w)) == -EAGAIN)
			take_all(&t, busy);
		assert_true(e == 0 || e == 1);
		busy[w.slot] = e == 0;
		t.local += (unsigned) e;
	}
	for (unsigned turns = 0; turns < 1000 && t.local < count; turns++)
		take_all(&t, busy);
	take_all(&t, busy);
	free(busy);
	return t;
}

static void check_stream(const struct job *job, uint64_t count) {
	struct tally t;

	open_pair(job);
	t = stream(count);
	assert_int_equal(t.local, count);
	assert_int_equal(t.received, op_takes_receive(job->op) ? count : 0);
	if (!op_takes_receive(job->op) && op_is_write(job->op))
		assert_memory_equal(rx(ROLE_SERVER, 1), tx(ROLE_CLIENT, 1), job->sizes[0]);
	close_pair();
}

static void test_every_operation_of_every_connection(void **state) {
	(void) state;
	for (int connection = 0; connection < CONNECTION_MAX; connection++)
		for (int op = 0; op < OP_MAX; op++) {
			struct job job = verbs_job((enum op) op);

			job.connection = (enum connection) connection;
			if (connection_has_op(job.connection, job.op))
				check_stream(&job, 103);
		}
}

static void test_moderation_batches_and_queue_pairs(void **state) {
	static const uint32_t counts[] = { 1, 2, 3, 8 };

	(void) state;
	for (size_t q = 0; q < ELEMENTSOF(counts); q++)
		for (size_t b = 0; b < ELEMENTSOF(counts); b++)
			for (size_t m = 0; m < ELEMENTSOF(counts); m++)
				for (int srq = 0; srq < 2; srq++) {
					struct job job = verbs_job(srq ? OP_SEND : OP_WRITE_IMM);

					job.queue_pairs = counts[q];
					job.batch = counts[b];
					job.cq_moderation = counts[m];
					job.srq = srq;
					job.outstanding = 96;
					check_stream(&job, 1000);
				}
}

static void test_a_thousand_queue_pairs(void **state) {
	struct job job = verbs_job(OP_SEND_IMM);

	(void) state;
	job.queue_pairs = JOB_QUEUE_PAIRS_MAX;
	job.outstanding = 2 * JOB_QUEUE_PAIRS_MAX;
	job.sizes[0] = 8;
	check_stream(&job, 5000);
}

/* Messages of UD lie behind the 40 bytes of the global route header, which are nobody's payload. */
static void test_datagrams_and_losses(void **state) {
	struct job job = verbs_job(OP_SEND);
	struct tally t;

	(void) state;
	for (int connection = CONNECTION_UC; connection <= CONNECTION_UD; connection++) {
		job.connection = (enum connection) connection;
		open_pair(&job);
		fake.lose_every = 10;
		t = stream(100);
		assert_int_equal(t.local, 100);
		assert_int_equal(t.received, 90);
		fake.lose_every = 0;
		close_pair();
	}
}

/* A latency session sends inline without any completion, and its send queue must not run full. */
static void test_ping_pong(void **state) {
	static const enum op ops[] = { OP_SEND, OP_SEND_IMM, OP_WRITE, OP_WRITE_IMM };

	(void) state;
	for (size_t k = 0; k < ELEMENTSOF(ops); k++)
		for (int inlined = 0; inlined < 2; inlined++) {
			struct job job = verbs_job(ops[k]);

			job.kind = KIND_LATENCY;
			job.outstanding = 1;
			job.inline_bytes = inlined ? -1 : 0;
			open_pair(&job);
			lend_all(ROLE_SERVER);
			lend_all(ROLE_CLIENT);
			for (uint32_t i = 0; i < 1000; i++)
				for (int role = ROLE_CLIENT; role <= ROLE_SERVER; role++) {
					struct work w = { .op = job.op, .slot = i % 2, .size = 64, .notify = op_is_write(job.op) };
					bool received = false, complete;
					struct completion c;
					int e;

					memset(tx((enum role) role, w.slot), (int) i, 64);
					/* Where memory is polled, nobody has looked at the completion queue until the send queue is full. */
					e = pair.backend->post(pair.ends[role].session, &w);
					if (e == -EAGAIN) {
						assert_int_equal(take((enum role) role, &c, 1), 0);
						e = pair.backend->post(pair.ends[role].session, &w);
					}
					assert_true(e == 0 || e == 1);
					complete = e == 1;
					for (unsigned turns = 0; turns < 1000 && !received; turns++) {
						received = take((enum role) !role, &c, 1) == 1 && c.kind == COMPLETION_RECEIVE;
						if (!complete)
							complete = take((enum role) role, &c, 1) == 1;
					}
					assert_true(received);
					for (unsigned turns = 0; turns < 1000 && !complete; turns++)
						complete = take((enum role) role, &c, 1) == 1;
					assert_true(complete);
					assert_memory_equal(rx((enum role) !role, w.slot), tx((enum role) role, w.slot), 63);
					assert_int_equal(pair.backend->post_receive(pair.ends[!role].session, w.slot,
										    pair.ends[!role].arena.slot_bytes), 0);
				}
			close_pair();
		}
}

static void test_atomics_and_reads_bring_back_what_was_there(void **state) {
	struct job job = verbs_job(OP_FETCH_ADD);
	struct completion c;
	uint64_t *word;

	(void) state;
	open_pair(&job);
	word = (uint64_t *) (void *) rx(ROLE_SERVER, 0);
	*word = 41;
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session, &(struct work) { .op = OP_FETCH_ADD, .size = 8, .operand = 1, .flush = true }), 0);
	assert_int_equal(take(ROLE_CLIENT, &c, 1), 1);
	assert_int_equal(*word, 42);
	assert_int_equal(*(uint64_t *) (void *) rx(ROLE_CLIENT, 0), 41);
	close_pair();

	job = verbs_job(OP_COMPARE_SWAP);
	open_pair(&job);
	word = (uint64_t *) (void *) rx(ROLE_SERVER, 0);
	*word = 5;
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session,
					    &(struct work) { .op = OP_COMPARE_SWAP, .size = 8, .operand = 9, .compare = 5, .flush = true }), 0);
	assert_int_equal(take(ROLE_CLIENT, &c, 1), 1);
	assert_int_equal(*word, 9);
	close_pair();

	job = verbs_job(OP_READ);
	open_pair(&job);
	memset(tx(ROLE_SERVER, 0), 0x77, 64);
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session, &(struct work) { .op = OP_READ, .size = 64, .flush = true }), 0);
	assert_int_equal(take(ROLE_CLIENT, &c, 1), 1);
	assert_memory_equal(rx(ROLE_CLIENT, 0), tx(ROLE_SERVER, 0), 64);
	close_pair();
}

/* Each status, out of the completion queue of a real session: said with its cause, and what follows it is not taken for the reason. */
static void test_every_failed_completion_reaches_the_caller(void **state) {
	struct job job = verbs_job(OP_WRITE);
	struct completion c;
	int n = 0;

	(void) state;
	for (int s = IBV_WC_LOC_LEN_ERR; s <= IBV_WC_TM_RNDV_INCOMPLETE; s++) {
		open_pair(&job);
		failure_reset();
		fake.next_status = (enum ibv_wc_status) s;
		assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session, &(struct work) { .op = OP_WRITE, .size = 64, .flush = true }), 0);
		for (unsigned turns = 0; turns < 100 && n >= 0; turns++)
			n = take(ROLE_CLIENT, &c, 1);
		assert_true(n < 0);
		assert_non_null(strstr(failure_text(), verbs_wc_cause((enum ibv_wc_status) s)));
		assert_non_null(strstr(failure_text(), "left0"));
		n = 0;
		close_pair();
	}
}

/* A queue pair that is broken refuses the next message: the reason is still the completion that broke it. */
static void test_post_after_a_failure_says_the_first_reason(void **state) {
	struct job job = verbs_job(OP_WRITE);
	int e;

	(void) state;
	open_pair(&job);
	failure_reset();
	fake.next_status = IBV_WC_RETRY_EXC_ERR;
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session, &(struct work) { .op = OP_WRITE, .size = 64 }), 0);
	fake_fail(FAKE_POST_SEND, EIO, 0);
	e = pair.backend->post(pair.ends[ROLE_CLIENT].session, &(struct work) { .op = OP_WRITE, .slot = 1, .size = 64 });
	assert_true(e < 0 && e != -EAGAIN);
	assert_non_null(strstr(failure_text(), "retries exceeded"));
	assert_int_equal(failure_code(), EXIT_PEER);
	close_pair();
}

/* A queue that is flushed may report that before what broke it: the cause is told, wherever it stands. */
static void test_a_flush_does_not_hide_its_cause(void **state) {
	struct job job = verbs_job(OP_WRITE);
	struct completion c;
	int n = 0;

	(void) state;
	job.kind = KIND_BANDWIDTH;
	job.queue_pairs = 2; /* the second fails after the first has been flushed */
	open_pair(&job);
	failure_reset();
	fake.next_status = IBV_WC_WR_FLUSH_ERR;
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session, &(struct work) { .op = OP_WRITE, .size = 64, .flush = true }), 0);
	fake.next_status = IBV_WC_RETRY_EXC_ERR;
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session, &(struct work) { .op = OP_WRITE, .slot = 1, .size = 64, .flush = true }), 0);
	for (unsigned turns = 0; turns < 100 && n >= 0; turns++)
		n = take(ROLE_CLIENT, &c, 1);
	assert_true(n < 0);
	assert_non_null(strstr(failure_text(), "retries exceeded"));
	assert_int_equal(failure_code(), EXIT_PEER);
	close_pair();
}

/* Nobody answers where the own port is down, or its address gone: that is this host's, and not the peer's. */
static void test_what_is_lost_here_is_not_the_peers_fault(void **state) {
	static const char *const parts[] = { "went down", "lost GID 1 (10.0.0.1)" };
	static const enum ibv_wc_status statuses[] = { IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR };

	(void) state;
	for (unsigned i = 0; i < 4; i++) {
		struct job job = verbs_job(OP_WRITE);
		struct completion c;
		int n = 0;

		fake_reset();
		fake_set_gid(fake_add("left0"), 1, 1, "10.0.0.1", IBV_GID_TYPE_ROCE_V2, NULL);
		fake_set_gid(fake_add("right0"), 1, 1, "10.0.0.2", IBV_GID_TYPE_ROCE_V2, NULL);
		open_pair(&job);
		failure_reset();
		fake.next_status = statuses[i % 2];
		assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session, &(struct work) { .op = OP_WRITE, .size = 64, .flush = true }), 0);
		if (i < 2)
			fake.devices[0].ports[0].state = IBV_PORT_DOWN;
		else
			memset(&fake.devices[0].gids[0][1].gid, 0, sizeof(union ibv_gid));
		for (unsigned turns = 0; turns < 100 && n >= 0; turns++)
			n = take(ROLE_CLIENT, &c, 1);
		assert_true(n < 0);
		assert_int_equal(failure_code(), EXIT_INTERNAL);
		assert_non_null(strstr(failure_text(), parts[i / 2]));
		close_pair();
	}
}

/* Every call, failing at its first, second... use: an error that is said, of this host, and nothing left behind. */
static void test_every_call_may_fail(void **state) {
	static const enum fake_call calls[] = { FAKE_GET_DEVICE_LIST, FAKE_OPEN_DEVICE, FAKE_QUERY_DEVICE, FAKE_QUERY_PORT, FAKE_ALLOC_PD, FAKE_REG_MR,
						FAKE_CREATE_CHANNEL, FAKE_CREATE_CQ, FAKE_CREATE_SRQ, FAKE_CREATE_QP, FAKE_MODIFY_QP, FAKE_CREATE_AH };
	static const int errors[] = { ENOMEM, EPERM, EINVAL, EIO };

	(void) state;
	for (int ud = 0; ud < 2; ud++)
		for (size_t c = 0; c < ELEMENTSOF(calls); c++) {
			struct job job = verbs_job(OP_SEND);
			unsigned uses;

			job.connection = ud ? CONNECTION_UD : CONNECTION_RC;
			job.completion = COMPLETION_EVENT;
			job.srq = true;
			job.queue_pairs = 3;
			verbs_pair_devices();
			open_pair(&job);
			uses = fake.calls[calls[c]];
			close_pair();
			assert_true(uses > 0 || (calls[c] == FAKE_CREATE_AH && !ud));
			for (unsigned skip = 0; skip < uses; skip++) {
				int e;

				verbs_pair_devices();
				(void) copy_string(job.device, sizeof(job.device), "left0"); /* else another device would do */
				(void) copy_string(job.server_device, sizeof(job.server_device), "right0");
				fake_fail(calls[c], errors[skip % ELEMENTSOF(errors)], skip);
				e = verbs_pair_open(&pair, &job);
				if (e >= 0 && skip < fake.calls[calls[c]])
					fail_msg("call %d, use %u: not seen", (int) calls[c], skip);
				if (e < 0) {
					assert_true(failure_text()[0] != '\0');
					assert_true(failure_code() == EXIT_HOST || failure_code() == EXIT_PEER);
				}
				close_pair();
			}
		}
}

static void test_inline_is_what_the_device_takes(void **state) {
	struct job job = verbs_job(OP_SEND);

	(void) state;
	job.kind = KIND_LATENCY;
	job.outstanding = 1;
	for (int less = 0; less < 2; less++) {
		fake.devices[0].inline_less = fake.devices[1].inline_less = less;
		fake.devices[0].max_inline = fake.devices[1].max_inline = 100; /* below what lat asks for by itself */
		job.inline_bytes = -1;
		open_pair(&job);
		assert_true(pair.ends[ROLE_CLIENT].session->inline_bytes <= 100);
		close_pair();
		job.inline_bytes = 100;
		open_pair(&job);
		assert_int_equal(pair.ends[ROLE_CLIENT].session->inline_bytes, 100);
		close_pair();
		job.inline_bytes = 101; /* asked for: refused rather than ignored */
		assert_true(verbs_pair_open(&pair, &job) < 0);
		assert_int_equal(failure_code(), EXIT_HOST);
		assert_non_null(strstr(failure_text(), "--inline 101"));
		close_pair();
	}
}

static void refused(const struct job *job, const char *part) {
	assert_true(verbs_pair_open(&pair, job) < 0);
	assert_int_equal(failure_code(), EXIT_HOST);
	if (!strstr(failure_text(), part))
		fail_msg("'%s' does not say '%s'", failure_text(), part);
	close_pair();
}

static void test_limits_of_the_device(void **state) {
	struct fake_device *d = &fake.devices[1]; /* of the server, which opens first */
	struct fake_device whole = *d;
	struct job job = verbs_job(OP_SEND);

	(void) state;
	d->ports[0].max_msg_sz = 63;
	refused(&job, "--size 64: it sends at most 63 bytes");
	*d = whole;
	d->attr.max_qp = 3;
	job.queue_pairs = 4;
	refused(&job, "4 are needed, and it has at most 3; lower --queue-pairs");
	*d = whole;
	d->attr.max_qp_wr = 2;
	refused(&job, "work requests of a queue pair");
	*d = whole;
	d->attr.max_cqe = 7;
	refused(&job, "entries of a completion queue");
	*d = whole;
	job.srq = true;
	d->attr.max_srq = 0;
	refused(&job, "leave --srq out");
	*d = whole;
	d->attr.max_srq_wr = 3;
	refused(&job, "receives of a shared receive queue");
	*d = whole;
	job = verbs_job(OP_SEND);
	job.connection = CONNECTION_UD;
	job.sizes[0] = 2048;
	d->ports[0].active_mtu = IBV_MTU_1024;
	refused(&job, "a message is one packet, and port 1 has an MTU of 1024 bytes");
	*d = whole;
	job = verbs_job(OP_FETCH_ADD);
	d->attr.atomic_cap = IBV_ATOMIC_NONE;
	refused(&job, "it has no atomic operations");
	*d = whole;
	job = verbs_job(OP_READ);
	d->attr.max_qp_rd_atom = 0;
	assert_true(verbs_pair_open(&pair, &job) < 0);
	assert_non_null(strstr(failure_text(), "takes no reads or atomics"));
	close_pair();
}

static void test_path_mtu(void **state) {
	struct job job = verbs_job(OP_WRITE);

	(void) state;
	fake.devices[1].ports[0].active_mtu = IBV_MTU_1024;
	open_pair(&job);
	assert_int_equal(pair.ends[ROLE_CLIENT].session->mtu, 1024); /* the smaller of both */
	assert_int_equal(pair.ends[ROLE_SERVER].session->mtu, 1024);
	close_pair();
	job.mtu = 512;
	open_pair(&job);
	assert_int_equal(pair.ends[ROLE_CLIENT].session->mtu, 512);
	close_pair();
	job.mtu = 2048;
	assert_true(verbs_pair_open(&pair, &job) < 0);
	assert_non_null(strstr(failure_text(), "--mtu 2048 is above the active MTU"));
	close_pair();
}

static void test_infiniband_by_lid(void **state) {
	struct job job = verbs_job(OP_SEND);

	(void) state;
	for (unsigned i = 0; i < 2; i++) {
		fake.devices[i].ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
		fake.devices[i].ports[0].lid = (uint16_t) (i + 1);
	}
	(void) copy_string(job.device, sizeof(job.device), "left0");
	(void) copy_string(job.server_device, sizeof(job.server_device), "right0");
	check_stream(&job, 50);
	fake.devices[0].ports[0].link_layer = IBV_LINK_LAYER_ETHERNET; /* two fabrics */
	assert_true(verbs_pair_open(&pair, &job) < 0);
	assert_int_equal(failure_code(), EXIT_PEER);
	close_pair();
}

/* A wrong GID index is the commonest mistake with RoCE; drivers answer it with EINVAL, which helps nobody. */
static void test_gids_that_cannot_reach_each_other(void **state) {
	struct job job = verbs_job(OP_SEND);

	(void) state;
	fake_set_gid(&fake.devices[1], 1, 0, "2001:db8::2", IBV_GID_TYPE_ROCE_V2, NULL);
	(void) copy_string(job.device, sizeof(job.device), "left0");
	(void) copy_string(job.server_device, sizeof(job.server_device), "right0");
	job.server_gid_index = 0;
	assert_true(verbs_pair_open(&pair, &job) < 0);
	assert_int_equal(failure_code(), EXIT_PEER);
	assert_non_null(strstr(failure_text(), "GID index 1 (10.0.0.1) and the peer's (2001:db8::2) are IPv4 and IPv6"));
	close_pair();
	fake_set_gid(&fake.devices[0], 1, 0, "2001:db8::1", IBV_GID_TYPE_ROCE_V2, NULL);
	job.gid_index = 0;
	check_stream(&job, 20);
}

/* The device is lost while everything is quiet: nothing ever completes, and only its own event tells. */
static void test_events_end_a_wait(void **state) {
	struct job job = verbs_job(OP_SEND);
	struct completion c;
	struct session *s;

	(void) state;
	job.completion = COMPLETION_EVENT;
	open_pair(&job);
	lend_all(ROLE_SERVER);
	s = pair.ends[ROLE_SERVER].session;
	assert_int_equal(pair.backend->wait(s, &c, 1, NSEC_PER_MSEC), 0);
	fake_raise(verbs_session(s)->device.context, IBV_EVENT_PORT_ERR, 1);
	assert_int_equal(pair.backend->wait(s, &c, 1, NSEC_PER_MSEC), 0); /* may come back */
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session, &(struct work) { .op = OP_SEND, .size = 64, .flush = true }), 0);
	assert_int_equal(pair.backend->wait(s, &c, 1, NSEC_PER_SEC), 1);
	assert_int_equal(c.kind, COMPLETION_RECEIVE);
	failure_reset();
	fake_raise(verbs_session(s)->device.context, IBV_EVENT_DEVICE_FATAL, 0);
	assert_true(pair.backend->wait(s, &c, 1, NSEC_PER_SEC) < 0);
	assert_int_equal(failure_code(), EXIT_INTERNAL);
	close_pair();
}

static void test_failures_while_running(void **state) {
	struct job job = verbs_job(OP_SEND);
	struct completion c;
	struct session *s;

	(void) state;
	job.completion = COMPLETION_EVENT;
	open_pair(&job);
	s = pair.ends[ROLE_SERVER].session;
	failure_reset();
	fake_fail(FAKE_POST_RECEIVE, EIO, 0);
	assert_true(pair.backend->post_receive(s, 0, 64) < 0);
	assert_int_equal(failure_code(), EXIT_INTERNAL);
	assert_non_null(strstr(failure_text(), "right0"));
	failure_reset();
	fake_fail(FAKE_POLL_CQ, EIO, 0);
	assert_true(pair.backend->poll(s, &c, 1) < 0);
	assert_non_null(strstr(failure_text(), "right0"));
	fake_fail(FAKE_POLL_CQ, 0, 0);
	failure_reset();
	fake_fail(FAKE_REQ_NOTIFY, EIO, 0);
	assert_true(pair.backend->wait(s, &c, 1, NSEC_PER_MSEC) < 0);
	assert_non_null(strstr(failure_text(), "right0"));
	failure_reset();
	fake_fail(FAKE_POST_SEND, ENODEV, 0);
	assert_true(pair.backend->post(pair.ends[ROLE_CLIENT].session, &(struct work) { .op = OP_SEND, .size = 64, .flush = true }) < 0);
	assert_non_null(strstr(failure_text(), "left0"));
	close_pair();
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_every_operation_of_every_connection, setup),
		cmocka_unit_test_setup(test_moderation_batches_and_queue_pairs, setup),
		cmocka_unit_test_setup(test_a_thousand_queue_pairs, setup),
		cmocka_unit_test_setup(test_datagrams_and_losses, setup),
		cmocka_unit_test_setup(test_ping_pong, setup),
		cmocka_unit_test_setup(test_atomics_and_reads_bring_back_what_was_there, setup),
		cmocka_unit_test_setup(test_every_failed_completion_reaches_the_caller, setup),
		cmocka_unit_test_setup(test_post_after_a_failure_says_the_first_reason, setup),
		cmocka_unit_test_setup(test_a_flush_does_not_hide_its_cause, setup),
		cmocka_unit_test_setup(test_what_is_lost_here_is_not_the_peers_fault, setup),
		cmocka_unit_test_setup(test_every_call_may_fail, setup),
		cmocka_unit_test_setup(test_inline_is_what_the_device_takes, setup),
		cmocka_unit_test_setup(test_limits_of_the_device, setup),
		cmocka_unit_test_setup(test_path_mtu, setup),
		cmocka_unit_test_setup(test_infiniband_by_lid, setup),
		cmocka_unit_test_setup(test_gids_that_cannot_reach_each_other, setup),
		cmocka_unit_test_setup(test_events_end_a_wait, setup),
		cmocka_unit_test_setup(test_failures_while_running, setup),
	};

	return cmocka_run_group_tests_name("verbs queue pairs, over a fake libibverbs", tests, NULL, NULL);
}
