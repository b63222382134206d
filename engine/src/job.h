/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: everything that one measurement needs to know, validated once and never changed after. The client makes it from
 * its options and sends it whole, so the two sides can never disagree; the server checks it again as hostile input.
 */
#pragma once

#include <jansson.h>

#include "clock.h"
#include "util.h"

enum op {
	OP_SEND,
	OP_WRITE,
	OP_READ,
	OP_FETCH_ADD,
	OP_COMPARE_SWAP,
	OP_MAX,
	OP_INVALID = -EINVAL,
};

enum kind {
	KIND_LATENCY,
	KIND_BANDWIDTH,
	KIND_MAX,
};

/* What a latency is (docs/definitions.md). AUTO is resolved before the job is sent. */
enum definition {
	DEFINITION_AUTO,
	DEFINITION_HALF_ROUND_TRIP,
	DEFINITION_COMPLETION,
	DEFINITION_MAX,
};

enum completion_mode {
	COMPLETION_BUSY,
	COMPLETION_EVENT,
	COMPLETION_MODE_MAX,
};

enum rate_unit {
	RATE_NONE,
	RATE_MESSAGES,          /* messages a second */
	RATE_BITS,              /* payload bits a second */
	RATE_UNIT_MAX,
};

enum {
	JOB_NAME_MAX = 64,
	JOB_SIZES_MAX = 128,            /* sizes in one sweep: 1..4G-1 by doubling are 32 */
	JOB_OUTSTANDING_MAX = 8192,
	JOB_REPORT_ALL_MAX = 10000000,  /* samples kept for --report-all: 80 MB */
};

#define JOB_SIZE_MAX UINT64_C(4294967295)       /* 4 GiB - 1: the largest message of CXI (cxi_send_lat(1)) */

struct job {
	enum kind kind;
	char backend[JOB_NAME_MAX];
	char provider[JOB_NAME_MAX];            /* empty: none or not yet chosen */
	char device[JOB_NAME_MAX];              /* of the client; empty: chosen */
	char server_device[JOB_NAME_MAX];       /* empty: the server chooses */
	enum op op;
	enum definition definition;
	enum completion_mode completion;
	enum clock_kind clock;
	uint64_t sizes[JOB_SIZES_MAX];
	size_t n_sizes;
	uint64_t iterations;                    /* 0: duration mode */
	uint64_t duration_ns;                   /* 0: iteration mode */
	uint64_t warmup;                        /* messages, each size */
	uint64_t gap_ns;
	uint32_t outstanding;
	bool bidirectional;
	bool verify;
	enum rate_unit rate_unit;
	double rate;                            /* in rate_unit */
	uint64_t interval_ns;                   /* 0: no interval lines */
	bool report_all;
	uint64_t timeout_ns;                    /* the longest time without progress */
};

const char *op_name(int op);
int op_from_name(const char *name);             /* -EINVAL: no such operation */
const char *kind_name(int kind);
const char *definition_name(int definition);
const char *completion_mode_name(int mode);

static inline bool op_is_atomic(enum op op) {
	return op == OP_FETCH_ADD || op == OP_COMPARE_SWAP;
}

uint64_t job_largest_size(const struct job *job);

/* Checks ranges and combinations; says what is wrong. -EINVAL. */
int job_validate(const struct job *job);

int job_to_json(const struct job *job, json_t **ret);

/* Reads and validates; every key must be known and of the right type. -EBADMSG (said). */
int job_from_json(const json_t *json, struct job *ret);
