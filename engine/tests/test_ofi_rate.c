/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: a sender of message rates over libfabric sends no more than its target has lent receives for, and goes on
 * when it is told of more; what an end has beside its arena is counted, too. Both ends in this process, over loopback,
 * by the provider tcp;ofi_rxm. And a GPU's memory that is out of reach is explained.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/ofi/ofi.h"
#include "backends/registry.h"
#include "base/message.h"
#include "memory/memory_room.h"

#define MIB (UINT64_C(1) << 20)

enum {
	SIZE = 64, DEPTH = 8,
	LENT = 2 * DEPTH - 2,   /* of the target */
	TURNS = 100000,         /* far more than any test takes: then it stands still */
};

struct end {
	struct arena arena;
	struct session *session;
	struct address address, *peer;
	pthread_t thread;
	int result;
};

static struct end ends[2];      /* by enum role */
static struct job job;

static void open_end(enum role role) {
	struct sockaddr_storage loopback = { .ss_family = AF_INET };
	struct end *e = &ends[role];
	const struct memory_kind host = { .type = MEMORY_HOST };
	struct open_arguments a = { .job = &job, .role = role, .arena = &e->arena, .local = &loopback,
				    .peer = &loopback, .wake_fd = -1 };

	((struct sockaddr_in *) &loopback)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(arena_open_flat(&e->arena, job_buffer(&job), (uint32_t) job_most_pieces(&job), false,
					 &host), 0);
	if (backend_find("ofi")->open(&a, &e->session) < 0)
		fail_msg("%s", failure_text());
	assert_int_equal(ofi_local_address(e->session, &e->address), 0);
	ends[!role].peer = &e->address;
}

static void *connect_end(void *end) {
	struct end *e = end;

	e->result = ofi_connect(e->session, e->peer);
	return NULL;
}

static int open_pair(void **state) {
	(void) state;
	memset(ends, 0, sizeof(ends));
	job_defaults(&job);
	job.kind = KIND_RATE;
	(void) copy_string(job.backend, sizeof(job.backend), "ofi");
	(void) copy_string(job.provider, sizeof(job.provider), "tcp;ofi_rxm");
	job.op = OP_SEND;
	job.sizes[0] = SIZE;
	job.n_sizes = 1;
	job.iterations = 1;
	job.outstanding = DEPTH;
	job.timeout_ns = 20 * NSEC_PER_SEC;
	job_complete_lanes(&job);
	assert_int_equal(job_validate(&job), 0);
	for (int i = 0; i < 2; i++)
		open_end((enum role) i);
	/* Each waits for the other. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&ends[i].thread, NULL, connect_end, &ends[i]), 0);
	for (int i = 0; i < 2; i++) {
		(void) pthread_join(ends[i].thread, NULL);
		assert_int_equal(ends[i].result, 0);
	}
	for (uint32_t slot = 0; slot < ends[ROLE_CLIENT].arena.slots; slot++)
		ofi_place(ends[ROLE_CLIENT].session, slot, 0, slot % DEPTH * SIZE, SIZE);
	return 0;
}

static int close_pair(void **state) {
	(void) state;
	for (int i = 0; i < 2; i++) {
		ends[i].session = ofi_close(ends[i].session);
		arena_close(&ends[i].arena);
	}
	failure_reset();
	return 0;
}

/* Posts as the driver does: no more than DEPTH are under way. Answers how many it could. */
static uint32_t post(uint32_t *under) {
	struct list list = { .op = OP_SEND, .n = 1, .size = SIZE, .signal = true };
	uint32_t n = 0;
	int e;

	for (; *under < DEPTH; (*under)++, n++) {
		e = ofi_post_list(ends[ROLE_CLIENT].session, &list);
		if (e <= 0) {
			assert_int_equal(e, 0);
			break;
		}
	}
	return n;
}

static uint32_t take(enum role role, enum completion_kind kind) {
	struct completion c[DEPTH];
	int n = ofi_poll(ends[role].session, c, DEPTH);

	if (n < 0)
		fail_msg("%s", failure_text());
	for (int i = 0; i < n; i++)
		assert_int_equal(c[i].kind, kind);
	return (uint32_t) n;
}

static void test_a_sender_waits_for_receives(void **state) {
	uint32_t posted = 0, under = 0, taken = 0;

	(void) state;
	/* The target does nothing: as many leave as it has lent receives for, whatever the kernel would take. */
	for (unsigned turn = 0; turn < 1000; turn++) {
		posted += post(&under);
		under -= take(ROLE_CLIENT, COMPLETION_LOCAL);
	}
	assert_int_equal(posted, LENT);
	/* Now it takes them, lends again, and says so. */
	for (unsigned turn = 0; taken < 50 * LENT; turn++) {
		assert_true(turn < TURNS);
		taken += take(ROLE_SERVER, COMPLETION_RECEIVE);
		posted += post(&under);
		under -= take(ROLE_CLIENT, COMPLETION_LOCAL);
		assert_in_range(posted, taken, taken + LENT);
	}
}

static void test_a_target_that_lends_the_impossible(void **state) {
	struct ofi_session *o = ofi_session(ends[ROLE_SERVER].session);
	const uint32_t word = htonl(3 * LENT);
	struct completion c;
	int e = 0;

	(void) state;
	memcpy(ofi_compare_area(o), &word, sizeof(word));
	assert_int_equal(fi_send(o->ep, ofi_compare_area(o), sizeof(word), o->scratch_desc, o->peer, o->contexts), 0);
	for (unsigned turn = 0; e == 0 && turn < TURNS; turn++) {
		(void) fi_cq_read(o->cq, NULL, 0);
		e = ofi_poll(ends[ROLE_CLIENT].session, &c, 1);
	}
	assert_int_equal(e, -EPROTO);
	assert_int_equal(failure_code(), EXIT_PEER);
	assert_non_null(strstr(failure_text(), "impossible number of receives"));
}

/* What compare-swap compares with is as large as half an arena, and counted with it. */
static void test_memory_to_compare_with_is_counted(void **state) {
	struct end *e = &ends[ROLE_SERVER];

	(void) state;
	memset(ends, 0, sizeof(ends));
	job_defaults(&job);
	job.kind = KIND_BANDWIDTH;
	(void) copy_string(job.backend, sizeof(job.backend), "ofi");
	(void) copy_string(job.provider, sizeof(job.provider), "tcp;ofi_rxm");
	job.op = OP_COMPARE_SWAP;
	job.sizes[0] = 8;
	job.n_sizes = 1;
	job.iterations = 1;
	job.outstanding = 1;
	job.timeout_ns = 20 * NSEC_PER_SEC;
	for (uint64_t room = 3; room >= 2; room--) {
		struct sockaddr_storage loopback = { .ss_family = AF_INET };
		struct open_arguments a = { .job = &job, .role = ROLE_SERVER, .arena = &e->arena, .local = &loopback,
					    .peer = &loopback, .wake_fd = -1 };
		int r;

		((struct sockaddr_in *) &loopback)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		room_limit(room * MIB + 2 * OFI_HELLO_BYTES + (room == 3 ? 4096 : 0));
		/* twice: what was counted is there again */
		for (int i = 0; i < 2; i++) {
			assert_int_equal(arena_open_scattered(&e->arena, MIB, 8, 2, NULL, false, NULL), 0);
			r = backend_find("ofi")->open(&a, &e->session);
			assert_int_equal(r, room == 3 ? 0 : -ENOMEM);
			if (r < 0)
				assert_non_null(strstr(failure_text(), "--max-memory"));
			e->session = ofi_close(e->session);
			arena_close(&e->arena);
			failure_reset();
		}
	}
	room_limit(0);
}

/* A mode, or an operation, that has no --bounce is not told to use it. */
static void test_a_bounce_is_advised_where_the_job_may_have_it(void **state) {
	static const struct {
		enum kind kind;
		enum op op;
		bool advised;
	} cases[] = {
		{ KIND_LATENCY, OP_SEND, true },
		{ KIND_BANDWIDTH, OP_SEND, true },
		{ KIND_LATENCY, OP_READ, false },
		{ KIND_BANDWIDTH, OP_WRITE, false },
		{ KIND_TRANSFER, OP_WRITE, false },
		{ KIND_RATE, OP_SEND, false },
	};

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct job gpu;

		job_defaults(&gpu);
		(void) copy_string(gpu.backend, sizeof(gpu.backend), "ofi");
		(void) copy_string(gpu.tx_memory, sizeof(gpu.tx_memory), "cuda:0");
		(void) copy_string(gpu.rx_memory, sizeof(gpu.rx_memory), "cuda:0");
		gpu.kind = cases[i].kind;
		gpu.op = cases[i].op;
		failure_reset();
		assert_int_equal(ofi_gpu_absent(&gpu, "shm"), -EOPNOTSUPP);
		assert_non_null(strstr(failure_text(), "built without a GPU runtime"));
		assert_int_equal(strstr(failure_text(), "--bounce") != NULL, cases[i].advised);
	}
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		/* first: what is left behind by sessions that fail stays counted */
		cmocka_unit_test(test_memory_to_compare_with_is_counted),
		cmocka_unit_test_setup_teardown(test_a_sender_waits_for_receives, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_a_target_that_lends_the_impossible, open_pair, close_pair),
		cmocka_unit_test(test_a_bounce_is_advised_where_the_job_may_have_it),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
