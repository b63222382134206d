/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: a sender of message rates posts before it sleeps when more receives were lent, and refuses what cannot have
 * been lent; a target says why its credits fail.
 * Over a libfabric whose completions a test writes down: no proof of any provider.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/ofi/ofi.h"
#include "backends/registry.h"
#include "base/message.h"

enum {
	SIZE = 64, DEPTH = 8,
	LENT = 2 * DEPTH - 2,   /* of the target, from the beginning */
	RECEIVES = LENT + 1,
};

/* What the queue hands out, one a look; 0 of each: nothing. */
static struct {
	void *done[RECEIVES];           /* contexts of what is complete */
	unsigned n, next;
	struct { void *context; uint8_t *buffer; } receives[RECEIVES];
	unsigned lent, slept;
	void *credit;                   /* context of the last message */
	int send_error, error;          /* libfabric's, negative; of what is complete next, positive; 0: none */
} fabric;

static ssize_t read_queue(struct fid_cq *cq, void *ret, size_t n) {
	(void) cq;
	(void) n;
	if (fabric.error)
		return -FI_EAVAIL;
	if (fabric.next == fabric.n)
		return -FI_EAGAIN;
	((struct fi_cq_entry *) ret)->op_context = fabric.done[fabric.next++];
	return 1;
}

static ssize_t read_error(struct fid_cq *cq, struct fi_cq_err_entry *ret, uint64_t flags) {
	(void) cq;
	(void) flags;
	*ret = (struct fi_cq_err_entry) { .op_context = fabric.credit, .flags = FI_SEND, .err = fabric.error };
	return 1;
}

static ssize_t lend(struct fid_ep *ep, void *buffer, size_t length, void *desc, fi_addr_t from, void *context) {
	(void) ep;
	(void) length;
	(void) desc;
	(void) from;
	fabric.receives[fabric.lent % RECEIVES].context = context;
	fabric.receives[fabric.lent++ % RECEIVES].buffer = buffer;
	return 0;
}

static ssize_t deliver(struct fid_ep *ep, const void *buffer, size_t length, void *desc, fi_addr_t to, void *context) {
	(void) ep;
	(void) buffer;
	(void) length;
	(void) desc;
	(void) to;
	fabric.credit = context;
	return fabric.send_error;
}

/* Armed is what sleeps next. */
static int arm(struct fid_fabric *f, struct fid **fids, int n) {
	(void) f;
	(void) fids;
	(void) n;
	fabric.slept++;
	return 0;
}

static struct fi_ops_cq cq_ops = { .read = read_queue, .readerr = read_error };
static struct fi_ops_msg msg_ops = { .recv = lend, .send = deliver };
static struct fi_ops_fabric fabric_ops = { .trywait = arm };
static struct fid_cq cq = { .ops = &cq_ops };
static struct fid_ep ep = { .msg = &msg_ops };
static struct fid_fabric fid = { .ops = &fabric_ops };

static struct job job;
static struct ofi_session session;
static uint8_t memory[DEPTH * SIZE], scratch[4096];
static struct fi_context2 contexts[2 * DEPTH + 2];
static struct ofi_place places[DEPTH];

static void open_end(enum role role) {
	memset(&fabric, 0, sizeof(fabric));
	job_defaults(&job);
	job.kind = KIND_RATE;
	(void) copy_string(job.backend, sizeof(job.backend), "ofi");
	job.op = OP_SEND;
	job.sizes[0] = SIZE;
	job.n_sizes = 1;
	job.outstanding = DEPTH;
	job_complete_lanes(&job);
	session = (struct ofi_session) {
		.session.backend = backend_find("ofi"),
		.ep = &ep, .cq = &cq, .fabric = &fid, .job = &job, .role = role, .slots = DEPTH, .contexts = contexts,
		.places = places, .scratch = scratch, .wait_fd = -1, .wake_fd = -1,
		.arena = { .tx = memory, .rx = memory, .length = 2 * sizeof(memory), .slots = DEPTH },
	};
	assert_int_equal(ofi_rate_open(&session, 0), 0);
	assert_int_equal(ofi_rate_begin(&session), 0);
}

static int close_end(void **state) {
	(void) state;
	ofi_rate_close(&session);
	failure_reset();
	return 0;
}

static void test_a_credit_is_used_before_sleeping(void **state) {
	struct list list = { .op = OP_SEND, .n = 1, .size = SIZE, .signal = true };
	const uint32_t credit = htonl(LENT + 4);
	struct pollfd alarms[BACKEND_ALARMS];
	struct completion c[DEPTH];

	(void) state;
	alarms_clear(alarms, BACKEND_ALARMS);
	open_end(ROLE_CLIENT);
	for (unsigned i = 0; i < LENT; i++)
		assert_int_equal(ofi_post_list(&session.session, &list), 1);
	assert_int_equal(ofi_post_list(&session.session, &list), 0);
	assert_int_equal(ofi_arm(&session.session, c, DEPTH, alarms), 0);
	assert_int_equal(fabric.slept, 1);

	memcpy(fabric.receives[0].buffer, &credit, sizeof(credit));
	fabric.done[fabric.n++] = fabric.receives[0].context;
	assert_int_equal(ofi_arm(&session.session, c, DEPTH, alarms), -EAGAIN);
	assert_int_equal(fabric.slept, 1);
	assert_int_equal(ofi_post_list(&session.session, &list), 1);
	assert_int_equal(ofi_arm(&session.session, c, DEPTH, alarms), 0);
	assert_int_equal(fabric.slept, 2);
}

/* It only ever grows, by no more than there are receives. */
static void test_an_impossible_credit_is_refused(void **state) {
	static const uint32_t lent[] = { 0, LENT - 1, LENT, 2 * LENT + 1, UINT32_MAX };
	struct completion c[DEPTH];

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(lent); i++) {
		const uint32_t word = htonl(lent[i]);

		open_end(ROLE_CLIENT);
		memcpy(fabric.receives[0].buffer, &word, sizeof(word));
		fabric.done[fabric.n++] = fabric.receives[0].context;
		assert_int_equal(ofi_poll(&session.session, c, DEPTH), -EPROTO);
		assert_int_equal(failure_code(), EXIT_PEER);
		assert_non_null(strstr(failure_text(), "lent an impossible number of receives"));
		assert_int_equal(close_end(state), 0);
	}
}

/* The target takes as many messages as make it tell of new receives. */
static int take_a_part(void) {
	struct completion c[DEPTH];
	int e = 0;

	for (unsigned i = 0; e >= 0 && i < LENT / 2; i++) {
		fabric.done[fabric.n++] = fabric.receives[i].context;
		e = ofi_poll(&session.session, c, DEPTH);
	}
	return e;
}

static void test_a_credit_that_fails_says_why(void **state) {
	struct completion c[DEPTH];

	(void) state;
	open_end(ROLE_SERVER);
	assert_int_equal(take_a_part(), 1);
	assert_non_null(fabric.credit);
	fabric.error = FI_ENETDOWN;
	assert_int_equal(ofi_poll(&session.session, c, DEPTH), -ENODEV);
	assert_non_null(strstr(failure_text(), "a send failed"));
	assert_non_null(strstr(failure_text(), "the device is down"));
}

static void test_a_credit_that_is_refused_says_why(void **state) {
	(void) state;
	open_end(ROLE_SERVER);
	fabric.send_error = -FI_ENETDOWN;
	assert_int_equal(take_a_part(), -ENODEV);
	assert_non_null(strstr(failure_text(), "telling the sender of receives failed"));
	assert_non_null(strstr(failure_text(), "the device is down"));
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_a_credit_is_used_before_sleeping, close_end),
		cmocka_unit_test(test_an_impossible_credit_is_refused),
		cmocka_unit_test_teardown(test_a_credit_that_fails_says_why, close_end),
		cmocka_unit_test_teardown(test_a_credit_that_is_refused_says_why, close_end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
