/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of lanes over tcp share: both ends in this process, over loopback, and their memory.
 * After cmocka.h.
 */
#pragma once

#include <sys/eventfd.h>

#include "backends/registry.h"
#include "backends/tcp/tcp.h"
#include "base/clock.h"
#include "pair.h"

enum {
	SLOTS = 8192,
	TURNS = 1000000,        /* far more than any test takes: then it stands still */
	UNTOUCHED = 0xaa,
};

struct end {
	struct arena arena;
	struct session *session;
};

struct transfer_pair {
	struct job job;
	struct end ends[2];     /* by enum role */
	uint64_t length;        /* of each buffer */
	int wake_fd;            /* of both */
};

static struct transfer_pair pair;

static inline struct job transfer_job(enum op op) {
	struct job job;

	job_defaults(&job);
	job.kind = KIND_TRANSFER;
	(void) copy_string(job.backend, sizeof(job.backend), "tcp");
	job.op = op;
	job.sizes[0] = 1;
	job.n_sizes = 1;
	job.iterations = 1;
	job.outstanding = SLOTS;
	job.timeout_ns = NSEC_PER_SEC;
	return job;
}

static inline const struct backend *hooks(enum role role) {
	return pair.ends[role].session->backend;
}

static inline uint8_t *memory(enum role role) {
	return pair.ends[role].arena.tx;
}

static inline void open_end(enum role role) {
	struct sockaddr_storage loopback = { .ss_family = AF_INET };
	struct end *e = &pair.ends[role];
	struct open_arguments a = {
		.job = &pair.job, .role = role, .arena = &e->arena, .local = &loopback, .peer = &loopback,
		.wake_fd = pair.wake_fd, .channel = pair.job.queue_pairs - 1,
	};

	((struct sockaddr_in *) &loopback)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	e->arena.tx = e->arena.rx = malloc(pair.length);
	e->arena.length = 2 * pair.length;
	e->arena.slot_bytes = pair.length;
	e->arena.slots = SLOTS;
	assert_non_null(e->arena.tx);
	assert_int_equal(backend_find("tcp")->open(&a, &e->session), 0);
}

/* A pattern that comes again after a prime number of bytes only, so that no two places of a batch look alike. */
static inline void fill(uint8_t *to, uint64_t length) {
	static uint8_t block[65521];

	for (uint32_t k = 0; k < sizeof(block); k++)
		block[k] = (uint8_t) (k * 2654435761u >> 13);
	for (uint64_t at = 0; at < length; at += sizeof(block))
		memcpy(to + at, block, MIN(length - at, sizeof(block)));
}

static inline void assert_same(uint64_t offset, uint64_t size) {
	assert_true(memcmp(memory(ROLE_CLIENT) + offset, memory(ROLE_SERVER) + offset, size) == 0);
}

static inline void open_pair(const struct job *job, uint64_t length) {
	struct address a[2];

	pair = (struct transfer_pair) { .job = *job, .length = length, .wake_fd = eventfd(0, EFD_CLOEXEC) };
	failure_reset();
	for (int i = 0; i < 2; i++) {
		open_end((enum role) i);
		assert_int_equal(hooks((enum role) i)->local_address(pair.ends[i].session, &a[i]), 0);
		memset(memory((enum role) i), UNTOUCHED, length);
	}
	fill(memory(job->op == OP_READ ? ROLE_SERVER : ROLE_CLIENT), length);
	assert_int_equal(hooks(ROLE_CLIENT)->connect(pair.ends[ROLE_CLIENT].session, &a[ROLE_SERVER]), 0);
	assert_int_equal(hooks(ROLE_SERVER)->connect(pair.ends[ROLE_SERVER].session, &a[ROLE_CLIENT]), 0);
}

static inline void close_pair(void) {
	for (int i = 0; i < 2; i++) {
		assert_null(hooks((enum role) i)->close(pair.ends[i].session));
		free(pair.ends[i].arena.tx);
	}
	(void) close(pair.wake_fd);
}

static inline int post(uint32_t slot, bool more) {
	const struct work w = { .op = pair.job.op, .slot = slot, .more = more };

	return hooks(ROLE_CLIENT)->post(pair.ends[ROLE_CLIENT].session, &w);
}

static inline void place(uint32_t slot, uint64_t offset, uint64_t size) {
	assert_true(offset + size <= pair.length);
	hooks(ROLE_CLIENT)->lanes->place(pair.ends[ROLE_CLIENT].session, slot, 0, offset, size);
}

static inline int poll_end(enum role role, struct completion *ret, unsigned max) {
	return hooks(role)->poll(pair.ends[role].session, ret, max);
}

/* The next completions, which come in the order of the posts; few at a time, so that some wait for the next call. */
static inline uint32_t take_completions(uint32_t next) {
	struct completion c[3];
	int n = poll_end(ROLE_CLIENT, c, ELEMENTSOF(c));

	if (n < 0)
		fail_msg("%s", failure_text());
	for (int i = 0; i < n; i++) {
		assert_int_equal(c[i].kind, COMPLETION_LOCAL);
		assert_int_equal(c[i].slot, next++);
	}
	return next;
}

static inline void serve(void) {
	struct completion none;
	int r = poll_end(ROLE_SERVER, &none, 1);

	if (r < 0)
		fail_msg("%s", failure_text());
	assert_int_equal(r, 0);
}

/* Until all of `count` are complete. */
static inline void finish(uint32_t next, uint32_t count) {
	for (unsigned turns = 0; next < count; turns++) {
		assert_true(turns < TURNS);
		next = take_completions(next);
		serve();
	}
	assert_int_equal(take_completions(next), next);
}

static inline void refused(enum role role, int error) {
	struct completion c;
	int r = 0;

	failure_reset();
	for (unsigned turns = 0; r == 0 && turns < TURNS; turns++)
		r = poll_end(role, &c, 1);
	assert_int_equal(r, error);
	assert_int_equal(failure_code(), EXIT_PEER);
	assert_true(failure_text()[0] != '\0');
}
