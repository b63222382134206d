/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each backend can ever do, whether or not this program was built with it:
 * a job is validated by this alone, so every build refuses the same jobs with the same words.
 * What this host can do is for the backend itself to say, once it is open.
 */
#pragma once

#include "job.h"

enum backend_id {
	BACKEND_TCP,
	BACKEND_VERBS,
	BACKEND_OFI,
	BACKEND_CXI,
	BACKEND_NULL,
	BACKEND_ID_MAX,
};

/* backend_facts.flags */
enum {
	BACKEND_SOLO = 1 << 0,          /* no data ever reaches the peer: null */
	BACKEND_PROVIDERS = 1 << 1,     /* --provider means something here */
	BACKEND_DEVICES = 1 << 2,       /* --device means something here */
	BACKEND_GPU = 1 << 3,           /* the arena may lie in a GPU's memory: registers it, and never touches it */
	BACKEND_BOUNCE = 1 << 4,        /* --bounce means something here */
	BACKEND_SLEEPS = 1 << 5,        /* --completion event: has wait() */
	BACKEND_LANES = 1 << 6,         /* jobs with lanes, writes and reads: has the hooks for them */
	/* a write's target sees it arrive by its last byte, unless job_unseen_write() says why not */
	BACKEND_STAMPS = 1 << 7,
	BACKEND_ONE_WORD = 1 << 8,      /* an atomic works on one word */
	BACKEND_QUEUE_PAIRS = 1 << 9,   /* a session has several; of others a lane opens a session for each */
};

struct backend_facts {
	const char *name;
	unsigned flags;
	unsigned ops;           /* 1u << OP_*, of lat and bw */
	const char *summary;    /* one line for --help and the manual */
};

/* By enum backend_id. */
extern const struct backend_facts backend_facts[BACKEND_ID_MAX];

/* NULL: there is no backend of that name. */
const struct backend_facts *backend_facts_of(const char *name);

enum { BACKENDS_WITH_MAX = 64 };

static inline bool backend_is(const struct backend_facts *b, enum backend_id id) {
	return b == &backend_facts[id];
}

/*
 * "; give --backend verbs or ofi", into `ret`: those of these backends (1u << BACKEND_*; 0: of all) that have
 * all of these operations and flags. Empty: none has them. null is left out, as it measures nothing.
 */
const char *backends_with(unsigned backends, unsigned ops, unsigned flags, char ret[BACKENDS_WITH_MAX]);
