/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the verbs backend over the fake: both ends of one job in this process. */
#pragma once

#include <arpa/inet.h>

#include "backends/registry.h"
#include "backends/verbs/verbs.h"
#include "fake_verbs.h"
#include "base/message.h"
#include "measure/run.h"

struct end {
	struct arena arena;
	struct session *session;
	struct sockaddr_storage address;
};

struct verbs_pair {
	const struct backend *backend;
	struct job job;
	struct end ends[2];     /* by enum role */
};

static inline struct sockaddr_storage address_of(const char *text) {
	struct sockaddr_storage a = { .ss_family = AF_INET };

	if (inet_pton(AF_INET, text, &((struct sockaddr_in *) &a)->sin_addr) == 1)
		return a;
	a.ss_family = AF_INET6;
	if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *) &a)->sin6_addr) != 1)
		abort();
	return a;
}

/* A bandwidth job of 8 messages of 64 bytes over RC, 4 at a time. */
static inline struct job verbs_job(enum op op) {
	struct job job;

	job_defaults(&job);
	job.kind = KIND_BANDWIDTH;
	(void) copy_string(job.backend, sizeof(job.backend), "verbs");
	job.op = op;
	job.sizes[0] = op_is_atomic(op) ? 8 : 64;
	job.n_sizes = 1;
	job.iterations = 8;
	job.outstanding = 4;
	job.verify = true; /* each slot has memory of its own */
	job.timeout_ns = NSEC_PER_SEC;
	return job;
}

static inline int end_open(struct verbs_pair *p, enum role role) {
	struct end *e = &p->ends[role];
	struct open_arguments a = {
		.job = &p->job, .role = role, .arena = &e->arena, .local = &e->address, .peer = &p->ends[!role].address,
		.wake_fd = -1,
	};
	int r;

	if (job_has_lanes(&p->job)) {
		/* One flat buffer, and messages that lie wherever place() puts them. */
		r = arena_open_flat(&e->arena, job_buffer(&p->job), (uint32_t) job_most_pieces(&p->job),
				    p->job.verify, &(struct memory_kind) { .type = MEMORY_HOST });
	} else {
		r = run_open_memory(&p->job, p->backend,
				    (const struct memory_kind[]) { job_tx_memory(&p->job), job_rx_memory(&p->job) },
				    &e->arena);
	}
	return r < 0 ? r : p->backend->open(&a, &e->session);
}

/* Opens and connects both ends. Whatever it answers, verbs_pair_close() it. */
static inline int verbs_pair_open(struct verbs_pair *p, const struct job *job) {
	struct address addresses[2] = { { 0 } };
	int r;

	*p = (struct verbs_pair) { .backend = backend_find("verbs"), .job = *job };
	p->ends[ROLE_CLIENT].address = address_of("10.0.0.1");
	p->ends[ROLE_SERVER].address = address_of("10.0.0.2");
	failure_reset();
	r = job_validate(job);
	if (r == 0)
		r = end_open(p, ROLE_SERVER);
	if (r == 0)
		r = end_open(p, ROLE_CLIENT);
	for (int i = 0; r == 0 && i < 2; i++)
		r = p->backend->local_address(p->ends[i].session, &addresses[i]);
	for (int i = 0; r == 0 && i < 2; i++)
		r = p->backend->connect(p->ends[i].session, &addresses[!i]);
	for (int i = 0; r == 0 && i < 2; i++)
		if (p->backend->begin)
			p->backend->begin(p->ends[i].session, job->sizes[0]);
	return r;
}

static inline void verbs_pair_close(struct verbs_pair *p) {
	for (int i = 0; i < 2; i++) {
		p->ends[i].session = p->backend->close(p->ends[i].session);
		if (p->ends[i].arena.tx)
			arena_close(&p->ends[i].arena);
	}
}

/* Two RoCE devices, one for each end. */
static inline void verbs_pair_devices(void) {
	fake_reset();
	fake_set_gid(fake_add("left0"), 1, 1, "10.0.0.1", IBV_GID_TYPE_ROCE_V2, NULL);
	fake_set_gid(fake_add("right0"), 1, 1, "10.0.0.2", IBV_GID_TYPE_ROCE_V2, NULL);
}
