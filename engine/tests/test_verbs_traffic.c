/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: queue pairs are made as each connection needs them,
 * every message is accounted for once whatever the moderation and the post lists, and nothing is left behind.
 * Over the fake of libibverbs (fake_verbs.h): no proof of the verbs path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/run.h"
#include "verbs_traffic.h"

/* What a stream of `count` messages does: slots in turn, each posted again only when it is complete. */
struct tally {
	uint64_t local, received;
	uint64_t next_arrival[JOB_QUEUE_PAIRS_MAX];
};

/* As run_lend_next() does. */
static int lend_next(uint32_t slot) {
	const struct arena *a = &pair.ends[ROLE_SERVER].arena;

	return pair.backend->post_receive(pair.ends[ROLE_SERVER].session, (slot + a->window) % a->slots, a->slot_bytes);
}

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
				assert_memory_equal(rx(ROLE_SERVER, c[i].slot), tx(ROLE_CLIENT, sent),
						    pair.job.sizes[0]);
			t->received++;
			assert_int_equal(lend_next(c[i].slot), 0);
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
		struct work w = { .op = pair.job.op, .slot = (uint32_t) (i % slots), .size = pair.job.sizes[0],
				  .operand = 1 };
		int e;

		for (unsigned turns = 0; busy[w.slot] || i - t.local >= job_under_way(&pair.job); turns++) {
			assert_true(turns < 1000);
			take_all(&t, busy);
		}
		w.more = more_follows(i, count, busy, slots) && i + 1 - t.local < job_under_way(&pair.job);
		w.flush = job_is_last(&pair.job, i, count - i);
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

/* One operation on one kind of connection, by the ibv_wr calls where `wr`, and by nothing else. */
static void check_operation(enum connection connection, enum op op, int64_t inlined, bool wr) {
	struct job job = verbs_job(op);
	unsigned rung = fake.calls[FAKE_WR_COMPLETE], sent = fake.calls[FAKE_POST_SEND];

	job.verbs.connection = connection;
	job.verbs.inline_bytes = inlined;
	check_stream(&job, 103);
	assert_int_equal(fake.calls[FAKE_WR_COMPLETE] > rung, wr);
	assert_int_equal(fake.calls[FAKE_POST_SEND] > sent, !wr);
}

/* Bandwidth posts messages that are only payload by the ibv_wr calls, where the device has them. */
static void test_every_operation_of_every_connection(void **state) {
	(void) state;
	for (int has_wr = 0; has_wr < 2; has_wr++)
		for (int connection = 0; connection < CONNECTION_MAX; connection++)
			for (int op = 0; op <= OP_COMPARE_SWAP; op++) {
				const bool pushes = op != OP_READ && !op_is_atomic((enum op) op);
				const bool plain = op == OP_WRITE || op == OP_READ || op == OP_SEND;
				const bool wr = has_wr && plain && connection != CONNECTION_UD;

				fake.devices[0].no_wr = fake.devices[1].no_wr = !has_wr;
				if (!connection_has_op((enum connection) connection, (enum op) op))
					continue;
				check_operation((enum connection) connection, (enum op) op, 0, wr);
				if (pushes)
					check_operation((enum connection) connection, (enum op) op, 64, wr);
			}
}

/* A ping-pong answers one message with one: it prepares them, and posts them as they are. */
static void test_latency_posts_what_is_prepared(void **state) {
	struct job job = verbs_job(OP_SEND);

	(void) state;
	job.kind = KIND_LATENCY;
	job.outstanding = 1;
	open_pair(&job);
	assert_int_equal(fake.calls[FAKE_CREATE_QP_EX], 0);
	close_pair();
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
					job.verbs.srq = srq;
					job.outstanding = 12;
					check_stream(&job, 1000);
				}
}

static void test_a_thousand_queue_pairs(void **state) {
	struct job job = verbs_job(OP_SEND_IMM);

	(void) state;
	job.queue_pairs = JOB_QUEUE_PAIRS_MAX;
	job.outstanding = 2;
	job.sizes[0] = 8;
	check_stream(&job, 5000);
}

/*
 * A receiver that looks at nothing for a while: its slots keep what it will check,
 * although the packets of a longer message are placed before the last one asks for a receive.
 */
static void test_no_slot_is_written_again_before_it_was_looked_at(void **state) {
	(void) state;
	for (int srq = 0; srq < 2; srq++) {
		struct job job = verbs_job(OP_WRITE_IMM);
		uint64_t posted = 0, complete = 0;
		struct completion c[8];
		uint32_t slots;

		job.sizes[0] = 70000; /* too long for more receives than the messages under way need */
		job.queue_pairs = 2;
		job.outstanding = 4;
		job.verbs.srq = srq;
		open_pair(&job);
		slots = pair.ends[ROLE_SERVER].arena.slots;
		for (uint32_t slot = 0; slot < run_receives(&job, slots); slot++)
			assert_int_equal(pair.backend->post_receive(pair.ends[ROLE_SERVER].session, slot, job.sizes[0]),
					 0);
		for (unsigned turns = 0; turns < 1000; turns++) {
			uint32_t slot = (uint32_t) (posted % slots);

			if (posted - complete < job_under_way(&job)) {
				memset(tx(ROLE_CLIENT, slot), (int) posted + 1, job.sizes[0]);
				assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session,
								    &(struct work) { .op = job.op, .slot = slot,
										     .size = job.sizes[0] }), 0);
				posted++;
			}
			complete += (unsigned) take(ROLE_CLIENT, c, ELEMENTSOF(c));
		}
		assert_true(complete >= job_under_way(&job)); /* enough are lent to keep the queue full */
		for (uint64_t i = 0; i < complete; i++)
			assert_int_equal(*rx(ROLE_SERVER, (uint32_t) (i % slots)), i + 1);
		close_pair();
	}
}

/* Messages of UD lie behind the 40 bytes of the global route header, which are nobody's payload. */
static void test_datagrams_and_losses(void **state) {
	struct job job = verbs_job(OP_SEND);
	struct tally t;

	(void) state;
	for (int connection = CONNECTION_UC; connection <= CONNECTION_UD; connection++) {
		job.verbs.connection = (enum connection) connection;
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
			job.verbs.inline_bytes = inlined ? -1 : 0;
			open_pair(&job);
			lend_all(ROLE_SERVER);
			lend_all(ROLE_CLIENT);
			for (uint32_t i = 0; i < 1000; i++)
				for (int role = ROLE_CLIENT; role <= ROLE_SERVER; role++) {
					struct work w = { .op = job.op, .slot = i % 2, .size = 64,
							  .notify = op_is_write(job.op) };
					bool received = false, complete;
					struct completion c;
					int e;

					memset(tx((enum role) role, w.slot), (int) i, 64);
					/*
					 * Where memory is polled, nobody has looked at the completion queue until
					 * the send queue is full.
					 */
					e = pair.backend->post(pair.ends[role].session, &w);
					if (e == -EAGAIN) {
						assert_int_equal(take((enum role) role, &c, 1), 0);
						e = pair.backend->post(pair.ends[role].session, &w);
					}
					assert_true(e == 0 || e == 1);
					complete = e == 1;
					for (unsigned turns = 0; turns < 1000 && !received; turns++) {
						received = take((enum role) !role, &c, 1) == 1 &&
							c.kind == COMPLETION_RECEIVE;
						if (!complete)
							complete = take((enum role) role, &c, 1) == 1;
					}
					assert_true(received);
					for (unsigned turns = 0; turns < 1000 && !complete; turns++)
						complete = take((enum role) role, &c, 1) == 1;
					assert_true(complete);
					assert_memory_equal(rx((enum role) !role, w.slot), tx((enum role) role, w.slot),
							    63);
					assert_int_equal(pair.backend->post_receive(pair.ends[!role].session, w.slot,
										    pair.ends[!role].arena.slot_bytes),
							 0);
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
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session,
					    &(struct work) { .op = OP_FETCH_ADD, .size = 8, .operand = 1,
							     .flush = true }), 0);
	assert_int_equal(take(ROLE_CLIENT, &c, 1), 1);
	assert_int_equal(*word, 42);
	assert_int_equal(*(uint64_t *) (void *) rx(ROLE_CLIENT, 0), 41);
	close_pair();

	job = verbs_job(OP_COMPARE_SWAP);
	open_pair(&job);
	word = (uint64_t *) (void *) rx(ROLE_SERVER, 0);
	*word = 5;
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session,
					    &(struct work) { .op = OP_COMPARE_SWAP, .size = 8, .operand = 9,
							     .compare = 5, .flush = true }), 0);
	assert_int_equal(take(ROLE_CLIENT, &c, 1), 1);
	assert_int_equal(*word, 9);
	close_pair();

	job = verbs_job(OP_READ);
	open_pair(&job);
	memset(tx(ROLE_SERVER, 0), 0x77, 64);
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session,
					    &(struct work) { .op = OP_READ, .size = 64, .flush = true }), 0);
	assert_int_equal(take(ROLE_CLIENT, &c, 1), 1);
	assert_memory_equal(rx(ROLE_CLIENT, 0), tx(ROLE_SERVER, 0), 64);
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
	job.verbs.mtu = 512;
	open_pair(&job);
	assert_int_equal(pair.ends[ROLE_CLIENT].session->mtu, 512);
	close_pair();
	job.verbs.mtu = 2048;
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
	/* One port requires GIDs: both ends then use them, not one of them alone. */
	fake_set_gid(&fake.devices[0], 1, 0, "fe80::1", IBV_GID_TYPE_IB, NULL);
	fake_set_gid(&fake.devices[1], 1, 0, "fe80::2", IBV_GID_TYPE_IB, NULL);
	fake.devices[1].ports[0].flags = IBV_QPF_GRH_REQUIRED;
	check_stream(&job, 50);
	assert_int_equal(verbs_pair_open(&pair, &job), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_true(((struct verbs_session *) pair.ends[i].session)->device.use_grh);
	close_pair();
	fake.devices[0].ports[0].link_layer = IBV_LINK_LAYER_ETHERNET; /* two fabrics */
	assert_true(verbs_pair_open(&pair, &job) < 0);
	assert_int_equal(failure_code(), EXIT_PEER);
	close_pair();
}

/* What is in use stands over what was asked for, and nothing else is touched. */
static void test_a_record_says_what_is_in_use(void **state) {
	struct job job = verbs_job(OP_SEND);
	json_t *record = json_pack("{s:{s:i, s:i, s:n, s:n, s:i}}", "params", "sl", 7, "gid_index", 7, "ib_port",
				   "server_ib_port", "batch", 7), *wanted;

	(void) state;
	fake.devices[1].attr.phys_port_cnt = 2;
	fake_set_gid(&fake.devices[1], 2, 0, "10.0.0.2", IBV_GID_TYPE_ROCE_V2, NULL);
	job.verbs.server_ib_port = 2;
	open_pair(&job);
	pair.backend->describe(pair.ends[ROLE_CLIENT].session, record);
	assert_int_equal(json_object_del(record, "queue_pairs"), 0);
	wanted = json_pack("{s:{s:i, s:i, s:i, s:i, s:i, s:i, s:i}}", "params", "sl", 0, "traffic_class", 0,
			   "gid_index", 1, "pkey", 0xffff, "ib_port", 1, "server_ib_port", 2, "batch", 7);
	assert_true(json_equal(record, wanted));
	json_decref(record);
	json_decref(wanted);
	close_pair();
}

/* Only what registers memory says whether PCIe may reorder; a write that is polled for may never be. */
static void test_relaxed_ordering_is_the_default_of_bandwidth(void **state) {
	static const struct {
		enum kind kind;
		enum relaxed_ordering asked;
		bool relaxed;
	} cases[] = {
		{ KIND_BANDWIDTH, RELAXED_ORDERING_AUTO, true },
		{ KIND_BANDWIDTH, RELAXED_ORDERING_OFF, false },
		{ KIND_LATENCY, RELAXED_ORDERING_AUTO, false },
		{ KIND_LATENCY, RELAXED_ORDERING_ON, true },
	};

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct job job = verbs_job(OP_WRITE);

		job.kind = cases[i].kind;
		job.outstanding = job.kind == KIND_LATENCY ? 1 : 4;
		job.verbs.relaxed_ordering = cases[i].asked;
		open_pair(&job);
		assert_int_equal((fake.access & IBV_ACCESS_RELAXED_ORDERING) != 0, cases[i].relaxed);
		assert_int_equal(pair.ends[ROLE_SERVER].session->stamps,
				 job.kind == KIND_LATENCY && !cases[i].relaxed);
		close_pair();
	}
}

/* Of a footprint both ends use the same places, each message has one of its own, and no more are lent than else. */
static void test_every_operation_over_a_footprint(void **state) {
	(void) state;
	for (int op = 0; op <= OP_COMPARE_SWAP; op++)
		for (uint32_t queue_pairs = 1; queue_pairs < 4; queue_pairs++)
			for (int srq = 0; srq <= op_takes_receive((enum op) op); srq++) {
				struct job job = verbs_job((enum op) op);
				uint32_t lent = backend_find("verbs")->slots(&job);

				job.footprint = 1 << 20;
				job.queue_pairs = queue_pairs;
				job.outstanding = 4;
				job.verbs.srq = srq;
				check_stream(&job, 5000);
				assert_true(job.footprint / 64 > 2 * lent);
			}
}

/* Without --verify, too: what one queue pair sends from, or receives into, is no other's. */
static void test_each_queue_pair_has_a_buffer(void **state) {
	static const uint64_t sizes[] = { 64, 65536 };

	(void) state;
	for (int footprint = 0; footprint < 2; footprint++)
		for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
			struct job job = verbs_job(OP_SEND);
			const struct arena *a = &pair.ends[ROLE_SERVER].arena;

			job.verify = false;
			job.sizes[0] = sizes[i];
			job.queue_pairs = 3;
			job.batch = 2;
			job.outstanding = 4;
			job.footprint = footprint ? 4 * sizes[i] : 0;
			open_pair(&job);
			assert_true(a->slots > 12);
			for (uint32_t k = 0; k < a->slots; k++)
				for (uint32_t other = 0; other < 6; other++)
					if (job_channel(&job, k) != job_channel(&job, other))
						assert_int_not_equal(arena_offset(a, k), arena_offset(a, other));
			close_pair();
		}
}

/* The last byte of each message is polled for where that message will lie. */
static void test_stamps_come_over_a_footprint(void **state) {
	struct job job = verbs_job(OP_WRITE);
	struct completion c;

	(void) state;
	job.kind = KIND_LATENCY;
	job.outstanding = 1;
	job.footprint = 1 << 16;
	open_pair(&job);
	assert_int_equal(pair.ends[ROLE_SERVER].arena.slots, 1024);
	for (uint32_t i = 0; i < 3000; i++) {
		struct work w = { .op = OP_WRITE, .slot = i % 1024, .size = 64, .notify = true };

		assert_int_equal(take(ROLE_SERVER, &c, 1), 0);
		assert_true(pair.backend->post(pair.ends[ROLE_CLIENT].session, &w) >= 0);
		while (take(ROLE_CLIENT, &c, 1) > 0)
			;
		assert_int_equal(take(ROLE_SERVER, &c, 1), 1);
		assert_int_equal(c.slot, w.slot);
	}
	close_pair();
}

/* Message 2^32 - 256 and message 2^32 lie in the same place, with different stamps. */
static void test_stamps_count_beyond_32_bits(void **state) {
	struct job job = verbs_job(OP_WRITE);
	struct completion c;

	(void) state;
	job.kind = KIND_LATENCY;
	job.outstanding = 1;
	job.footprint = 256 * 64;
	open_pair(&job);
	assert_int_equal(pair.ends[ROLE_SERVER].arena.slots, 256);
	verbs_session(pair.ends[ROLE_CLIENT].session)->stamps_sent = (uint32_t) -256;
	verbs_session(pair.ends[ROLE_SERVER].session)->stamps_seen = (uint32_t) -256;
	for (uint32_t i = 0; i < 512; i++) {
		struct work w = { .op = OP_WRITE, .slot = i % 256, .size = 64, .notify = true };

		assert_int_equal(take(ROLE_SERVER, &c, 1), 0);
		assert_true(pair.backend->post(pair.ends[ROLE_CLIENT].session, &w) >= 0);
		while (take(ROLE_CLIENT, &c, 1) > 0)
			;
		assert_int_equal(take(ROLE_SERVER, &c, 1), 1);
		assert_int_equal(c.slot, w.slot);
	}
	close_pair();
}

static json_int_t pkey_of(const json_t *record) {
	return json_integer_value(json_object_get(json_object_get(record, "params"), "pkey"));
}

static void set_pkeys(unsigned device, const uint16_t keys[FAKE_PKEYS]) {
	struct fake_device *d = &fake.devices[device];

	d->ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	d->ports[0].lid = (uint16_t) (device + 1);
	memcpy(d->pkeys[0], keys, sizeof(d->pkeys[0]));
}

static void refused_by_partition(const struct job *job, enum exit_code code, const char *why) {
	assert_true(verbs_pair_open(&pair, job) < 0);
	assert_int_equal(failure_code(), code);
	if (!strstr(failure_text(), why))
		fail_msg("%s", failure_text());
	close_pair();
}

/* A tenant's partition may stand anywhere in the table, and at another place at each end. */
static void test_partitions_are_found_in_the_table(void **state) {
	struct job job = verbs_job(OP_SEND);

	(void) state;
	(void) copy_string(job.device, sizeof(job.device), "left0");
	(void) copy_string(job.server_device, sizeof(job.server_device), "right0");
	set_pkeys(0, (const uint16_t[FAKE_PKEYS]) { 0x7fff, 0, 0x8001 });
	set_pkeys(1, (const uint16_t[FAKE_PKEYS]) { 0x7fff, 0x8001, 0, 0x8002 });
	check_stream(&job, 50);
	job.verbs.pkey = 0x7fff;
	refused_by_partition(&job, EXIT_PEER, "both ports are limited members of partition 0x7fff");
	job.verbs.pkey = 0x8002;
	refused_by_partition(&job, EXIT_HOST,
			     "left0 port 1 is not in the partition of --pkey 0x8002; it has the keys 0x7fff, 0x8001");
	job.verbs.pkey = 0;
	set_pkeys(1, (const uint16_t[FAKE_PKEYS]) { 0x8002, 0x0001 });
	refused_by_partition(&job, EXIT_PEER, "its partition key is 0x8001 and the peer's 0x8002");
	job.verbs.pkey = 1; /* one limited member, one full */
	check_stream(&job, 50);
}

/* Each end's own: with membership, which the other's may have not. */
static void test_a_record_names_the_partition(void **state) {
	struct job job = verbs_job(OP_SEND);
	json_t *of_client, *of_server;

	(void) state;
	(void) copy_string(job.device, sizeof(job.device), "left0");
	(void) copy_string(job.server_device, sizeof(job.server_device), "right0");
	set_pkeys(0, (const uint16_t[FAKE_PKEYS]) { 0, 0x7fff, 0x8001 });
	set_pkeys(1, (const uint16_t[FAKE_PKEYS]) { 0x0001 });
	open_pair(&job);
	of_client = described(ROLE_CLIENT);
	of_server = described(ROLE_SERVER);
	assert_int_equal(pkey_of(of_client), 0x8001);
	assert_int_equal(pkey_of(of_server), 0x0001);
	json_decref(of_client);
	json_decref(of_server);
	close_pair();
	/* a table without keys, as some Ethernet drivers have */
	set_pkeys(0, (const uint16_t[FAKE_PKEYS]) { 0 });
	open_pair(&job);
	of_client = described(ROLE_CLIENT);
	assert_true(json_is_null(json_object_get(json_object_get(of_client, "params"), "pkey")));
	json_decref(of_client);
	close_pair();
}

/* A wrong GID index is the commonest mistake with RoCE; drivers answer it with EINVAL, which helps nobody. */
static void test_gids_that_cannot_reach_each_other(void **state) {
	struct job job = verbs_job(OP_SEND);

	(void) state;
	fake_set_gid(&fake.devices[1], 1, 0, "2001:db8::2", IBV_GID_TYPE_ROCE_V2, NULL);
	(void) copy_string(job.device, sizeof(job.device), "left0");
	(void) copy_string(job.server_device, sizeof(job.server_device), "right0");
	job.verbs.server_gid_index = 0;
	assert_true(verbs_pair_open(&pair, &job) < 0);
	assert_int_equal(failure_code(), EXIT_PEER);
	assert_non_null(strstr(failure_text(),
			       "GID index 1 (10.0.0.1) and the peer's (2001:db8::2) are IPv4 and IPv6"));
	close_pair();
	fake_set_gid(&fake.devices[0], 1, 0, "2001:db8::1", IBV_GID_TYPE_ROCE_V2, NULL);
	job.verbs.gid_index = 0;
	check_stream(&job, 20);
}

/* No index is named, and the control connection is of IPv4: the ports' only addresses are used and named. */
static void test_gids_of_ipv6_alone(void **state) {
	struct job job = verbs_job(OP_SEND);

	(void) state;
	for (unsigned i = 0; i < 2; i++)
		fake_set_gid(&fake.devices[i], 1, 1, i ? "2001:db8::2" : "2001:db8::1", IBV_GID_TYPE_ROCE_V2, NULL);
	(void) copy_string(job.device, sizeof(job.device), "left0");
	(void) copy_string(job.server_device, sizeof(job.server_device), "right0");
	for (int connection = 0; connection < CONNECTION_MAX; connection++) {
		job.verbs.connection = (enum connection) connection;
		check_stream(&job, 20);
	}
	open_pair(&job);
	assert_string_equal(pair.ends[ROLE_CLIENT].session->address, "2001:db8::1");
	assert_string_equal(pair.ends[ROLE_SERVER].session->address, "2001:db8::2");
	close_pair();
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_every_operation_of_every_connection, setup),
		cmocka_unit_test_setup(test_latency_posts_what_is_prepared, setup),
		cmocka_unit_test_setup(test_moderation_batches_and_queue_pairs, setup),
		cmocka_unit_test_setup(test_a_thousand_queue_pairs, setup),
		cmocka_unit_test_setup(test_no_slot_is_written_again_before_it_was_looked_at, setup),
		cmocka_unit_test_setup(test_datagrams_and_losses, setup),
		cmocka_unit_test_setup(test_ping_pong, setup),
		cmocka_unit_test_setup(test_atomics_and_reads_bring_back_what_was_there, setup),
		cmocka_unit_test_setup(test_path_mtu, setup),
		cmocka_unit_test_setup(test_infiniband_by_lid, setup),
		cmocka_unit_test_setup(test_a_record_says_what_is_in_use, setup),
		cmocka_unit_test_setup(test_relaxed_ordering_is_the_default_of_bandwidth, setup),
		cmocka_unit_test_setup(test_every_operation_over_a_footprint, setup),
		cmocka_unit_test_setup(test_each_queue_pair_has_a_buffer, setup),
		cmocka_unit_test_setup(test_stamps_come_over_a_footprint, setup),
		cmocka_unit_test_setup(test_stamps_count_beyond_32_bits, setup),
		cmocka_unit_test_setup(test_partitions_are_found_in_the_table, setup),
		cmocka_unit_test_setup(test_a_record_names_the_partition, setup),
		cmocka_unit_test_setup(test_gids_that_cannot_reach_each_other, setup),
		cmocka_unit_test_setup(test_gids_of_ipv6_alone, setup),
	};

	return cmocka_run_group_tests_name("verbs queue pairs, over a fake libibverbs", tests, NULL, NULL);
}
