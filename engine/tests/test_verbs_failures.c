/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: what the device cannot do is refused by name, and whatever fails, at the beginning or in the middle, is said
 * with its cause and leaves nothing behind. Over the fake of libibverbs (fake_verbs.h): no proof of the verbs path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/run.h"
#include "verbs_traffic.h"

/*
 * Each status, out of the completion queue of a real session: said with its cause,
 * and what follows it is not taken for the reason.
 */
static void test_every_failed_completion_reaches_the_caller(void **state) {
	struct job job = verbs_job(OP_WRITE);
	struct completion c;
	int n = 0;

	(void) state;
	for (int s = IBV_WC_LOC_LEN_ERR; s <= IBV_WC_TM_RNDV_INCOMPLETE; s++) {
		open_pair(&job);
		failure_reset();
		fake.next_status = (enum ibv_wc_status) s;
		assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session,
						    &(struct work) { .op = OP_WRITE, .size = 64, .flush = true }), 0);
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

	(void) state;
	for (int wr = 0; wr < 2; wr++) {
		int e;

		verbs_pair_devices();
		fake.devices[0].no_wr = fake.devices[1].no_wr = !wr;
		open_pair(&job);
		failure_reset();
		fake.next_status = IBV_WC_RETRY_EXC_ERR;
		assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session,
						    &(struct work) { .op = OP_WRITE, .size = 64 }), 0);
		fake_fail(wr ? FAKE_WR_COMPLETE : FAKE_POST_SEND, EIO, 0);
		e = pair.backend->post(pair.ends[ROLE_CLIENT].session,
				       &(struct work) { .op = OP_WRITE, .slot = 1, .size = 64 });
		assert_true(e < 0 && e != -EAGAIN);
		assert_non_null(strstr(failure_text(), "retries exceeded"));
		assert_int_equal(failure_code(), EXIT_PEER);
		close_pair();
	}
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
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session,
					    &(struct work) { .op = OP_WRITE, .size = 64, .flush = true }), 0);
	fake.next_status = IBV_WC_RETRY_EXC_ERR;
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session,
					    &(struct work) { .op = OP_WRITE, .slot = 1, .size = 64, .flush = true }),
			 0);
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
		assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session,
						    &(struct work) { .op = OP_WRITE, .size = 64, .flush = true }), 0);
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

/*
 * An end that only receives has nothing under way that could fail: when its time is over,
 * its own port is asked before the peer is blamed.
 */
static void test_a_receiver_asks_its_own_port_at_the_time_out(void **state) {
	static const enum exit_code codes[] = { EXIT_PEER, EXIT_INTERNAL };
	static const char *const parts[] = { "no progress for", "right0 port 1 of this host went down" };

	(void) state;
	for (int down = 0; down < 2; down++) {
		struct job job = verbs_job(OP_SEND);
		struct control control = { .fd = -1, .peer_name = "left" };
		struct run run = { .job = &job, .control = &control, .patience_ns = 1 };

		open_pair(&job);
		lend_all(ROLE_SERVER);
		run.backend = pair.backend;
		run.session = pair.ends[ROLE_SERVER].session;
		failure_reset();
		fake.devices[1].ports[0].state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
		assert_true(run_idle(&run) < 0);
		assert_int_equal(failure_code(), codes[down]);
		assert_non_null(strstr(failure_text(), parts[down]));
		close_pair();
	}
}

/* A queue pair that cannot be made with the ibv_wr calls is made without: only then is it an error. */
static void devices_without_wr(void) {
	verbs_pair_devices();
	fake.devices[0].no_wr = fake.devices[1].no_wr = true;
}

/* Every call, failing at its first, second... use: an error that is said, of this host, and nothing left behind. */
static void test_every_call_may_fail(void **state) {
	static const enum fake_call calls[] = { FAKE_GET_DEVICE_LIST, FAKE_OPEN_DEVICE, FAKE_QUERY_DEVICE,
						FAKE_QUERY_PORT, FAKE_ALLOC_PD, FAKE_REG_MR, FAKE_CREATE_CHANNEL,
						FAKE_CREATE_CQ, FAKE_CREATE_SRQ, FAKE_CREATE_QP, FAKE_MODIFY_QP,
						FAKE_CREATE_AH };
	static const int errors[] = { ENOMEM, EPERM, EINVAL, EIO };

	(void) state;
	for (int ud = 0; ud < 2; ud++)
		for (size_t c = 0; c < ELEMENTSOF(calls); c++) {
			struct job job = verbs_job(OP_SEND);
			unsigned uses;

			job.verbs.connection = ud ? CONNECTION_UD : CONNECTION_RC;
			job.completion = COMPLETION_EVENT;
			job.verbs.srq = true;
			job.queue_pairs = 3;
			devices_without_wr();
			open_pair(&job);
			uses = fake.calls[calls[c]];
			close_pair();
			assert_true(uses > 0 || (calls[c] == FAKE_CREATE_AH && !ud));
			for (unsigned skip = 0; skip < uses; skip++) {
				int e;

				devices_without_wr();
				/* else another device would do */
				(void) copy_string(job.device, sizeof(job.device), "left0");
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
		job.verbs.inline_bytes = -1;
		open_pair(&job);
		assert_true(pair.ends[ROLE_CLIENT].session->inline_bytes == 96);
		close_pair();
		job.verbs.inline_bytes = 100;
		open_pair(&job);
		assert_int_equal(pair.ends[ROLE_CLIENT].session->inline_bytes, 100);
		close_pair();
		job.verbs.inline_bytes = 101; /* asked for: refused rather than ignored */
		assert_true(verbs_pair_open(&pair, &job) < 0);
		assert_int_equal(failure_code(), EXIT_HOST);
		assert_non_null(strstr(failure_text(), "--inline 101"));
		close_pair();
	}
}

/* However many receives the peer has, each takes --outstanding messages, and more once they are complete. */
static void test_each_queue_pair_has_a_depth_of_its_own(void **state) {
	static const enum op ops[] = { OP_SEND, OP_SEND_IMM, OP_WRITE };

	(void) state;
	for (size_t k = 0; k < ELEMENTSOF(ops); k++) {
		struct job job = verbs_job(ops[k]);
		struct work w = { .op = job.op, .size = 64, .flush = true };
		struct completion c[64];

		job.queue_pairs = 3;
		job.outstanding = 5;
		open_pair(&job);
		lend_all(ROLE_SERVER);
		for (int round = 0; round < 2; round++) {
			for (uint32_t i = 0; i < 15; i++, w.slot = (w.slot + 1) % pair.ends[ROLE_CLIENT].arena.slots)
				assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session, &w), 0);
			assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session, &w), -EAGAIN);
			assert_int_equal(take(ROLE_CLIENT, c, ELEMENTSOF(c)), 15);
			for (uint32_t i = 0; i < 15; i++)
				assert_int_equal(c[i].channel, job_channel(&job, c[i].slot));
		}
		close_pair();
	}
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
	refused(&job, "entries of a completion queue: 2064 are needed, and it has at most 7; "
		"lower --outstanding or --queue-pairs");
	*d = whole;
	job.verbs.srq = true;
	d->attr.max_srq = 0;
	refused(&job, "leave --srq out");
	*d = whole;
	d->attr.max_srq_wr = 3;
	refused(&job, "receives of a shared receive queue");
	*d = whole;
	job = verbs_job(OP_SEND);
	job.verbs.connection = CONNECTION_UD;
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
	assert_int_equal(pair.backend->post(pair.ends[ROLE_CLIENT].session,
					    &(struct work) { .op = OP_SEND, .size = 64, .flush = true }), 0);
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
	fake_fail(FAKE_WR_COMPLETE, ENODEV, 0);
	assert_true(pair.backend->post(pair.ends[ROLE_CLIENT].session,
				       &(struct work) { .op = OP_SEND, .size = 64, .flush = true }) < 0);
	assert_non_null(strstr(failure_text(), "left0"));
	close_pair();
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_every_failed_completion_reaches_the_caller, setup),
		cmocka_unit_test_setup(test_post_after_a_failure_says_the_first_reason, setup),
		cmocka_unit_test_setup(test_a_flush_does_not_hide_its_cause, setup),
		cmocka_unit_test_setup(test_what_is_lost_here_is_not_the_peers_fault, setup),
		cmocka_unit_test_setup(test_a_receiver_asks_its_own_port_at_the_time_out, setup),
		cmocka_unit_test_setup(test_every_call_may_fail, setup),
		cmocka_unit_test_setup(test_inline_is_what_the_device_takes, setup),
		cmocka_unit_test_setup(test_limits_of_the_device, setup),
		cmocka_unit_test_setup(test_each_queue_pair_has_a_depth_of_its_own, setup),
		cmocka_unit_test_setup(test_events_end_a_wait, setup),
		cmocka_unit_test_setup(test_failures_while_running, setup),
	};

	return cmocka_run_group_tests_name("failures and limits of verbs, over a fake libibverbs", tests, NULL, NULL);
}
