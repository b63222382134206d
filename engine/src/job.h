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
	OP_SEND_IMM,            /* send with 32 bits of immediate data */
	OP_WRITE,
	OP_WRITE_IMM,           /* write with immediate: the target sees a completion of its own */
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

/* Transport service of a queue pair. Only verbs offers the choice; for others it stays at RC and says nothing. */
enum connection {
	CONNECTION_RC,          /* reliable connection */
	CONNECTION_UC,          /* unreliable connection: in order, acknowledged by nobody */
	CONNECTION_UD,          /* unreliable datagram: each message one packet */
	CONNECTION_MAX,
};

/*
 * Choices that not every backend has: a backend lists those that it takes in its `options`; job_validate() and the command
 * line refuse the rest.
 */
enum job_option {
	JOB_OPTION_CONNECTION = 1 << 0,
	JOB_OPTION_IB_PORT = 1 << 1,            /* and server_ib_port */
	JOB_OPTION_GID_INDEX = 1 << 2,          /* and server_gid_index */
	JOB_OPTION_MTU = 1 << 3,
	JOB_OPTION_SL = 1 << 4,
	JOB_OPTION_TRAFFIC_CLASS = 1 << 5,
	JOB_OPTION_QUEUE_PAIRS = 1 << 6,
	JOB_OPTION_BATCH = 1 << 7,
	JOB_OPTION_CQ_MODERATION = 1 << 8,
	JOB_OPTION_INLINE = 1 << 9,
	JOB_OPTION_SRQ = 1 << 10,
	JOB_OPTION_RDMA_CM = 1 << 11,
	JOB_OPTION_RELAXED_ORDERING = 1 << 12,
	JOB_OPTION_RETRY = 1 << 13,
	JOB_OPTION_RNR_RETRY = 1 << 14,
	JOB_OPTION_TIMEOUT_EXPONENT = 1 << 15,
	JOB_OPTION_HUGE = 1 << 16,
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
	JOB_QUEUE_PAIRS_MAX = 1024,
	JOB_INLINE_MAX = 65536,         /* only a bound for hostile input: the device says what it takes (around 1 KiB at most) */
	JOB_GID_INDEX_MAX = 255,        /* 8 bits in an address vector: ibv_global_route.sgid_index */
	JOB_IB_PORT_MAX = 255,          /* 8 bits: ibv_qp_attr.port_num */
	JOB_SL_MAX = 15,                /* 4 bits of an InfiniBand local route header */
	JOB_TRAFFIC_CLASS_MAX = 255,    /* 8 bits of an IPv6 (and global route) header; IPv4's type of service */
	JOB_RETRY_MAX = 7,              /* 3 bits in a queue pair context; for RNR, 7 is for ever */
	JOB_TIMEOUT_EXPONENT_MAX = 31,  /* 5 bits; 0: wait for ever */
	/* 4.096 us x 2^14 = 67 ms, as perftest(1)'s -u: what a lost packet costs at least, and far above any fabric's round trip */
	JOB_TIMEOUT_EXPONENT = 14,
	JOB_MTU_MIN = 256,              /* ibv_mtu(3): powers of two from here */
	JOB_MTU_MAX = 4096,
};

#define JOB_HUGE_2M (UINT64_C(2) << 20)
#define JOB_HUGE_1G (UINT64_C(1) << 30)

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

	/* From here on: what only some backends take (enum job_option); job_defaults() sets what none would choose otherwise. */
	enum connection connection;
	uint32_t ib_port, server_ib_port;       /* 0: chosen */
	int32_t gid_index, server_gid_index;    /* -1: chosen */
	uint32_t mtu;                           /* bytes, a power of two; 0: the smaller active MTU of both ends */
	uint32_t sl;                            /* service level */
	uint32_t traffic_class;
	uint32_t queue_pairs;                   /* times `batch`, and times `cq_moderation`: at most `outstanding` */
	uint32_t batch;                         /* work requests of one post list and doorbell */
	uint32_t cq_moderation;                 /* every Nth work request of a queue pair is signalled */
	int64_t inline_bytes;                   /* -1: automatic */
	bool srq;
	bool rdma_cm;
	bool relaxed_ordering;                  /* a write's last byte may then be visible first: nothing may poll memory for it */
	uint32_t retry, rnr_retry;
	uint32_t timeout_exponent;              /* 4.096 us x 2^n; 0: for ever */
	uint64_t huge;                          /* bytes of a huge page: 0, JOB_HUGE_2M or JOB_HUGE_1G */
};

/* A job in which everything that has a default holds it, and the rest is zero: every job begins so. */
void job_defaults(struct job *ret);

const char *op_name(int op);
int op_from_name(const char *name);             /* -EINVAL: no such operation */
const char *kind_name(int kind);
const char *definition_name(int definition);
const char *completion_mode_name(int mode);
const char *connection_name(int connection);    /* "RC", "UC", "UD": as in records */

static inline bool op_is_atomic(enum op op) {
	return op == OP_FETCH_ADD || op == OP_COMPARE_SWAP;
}

static inline bool op_is_send(enum op op) {
	return op == OP_SEND || op == OP_SEND_IMM;
}

static inline bool op_is_write(enum op op) {
	return op == OP_WRITE || op == OP_WRITE_IMM;
}

/* Whether every message of it takes a receive of the target, who then sees a completion. */
static inline bool op_takes_receive(enum op op) {
	return op_is_send(op) || op == OP_WRITE_IMM;
}

/* Whether a connection of this kind has the operation (InfiniBand Architecture Specification, volume 1, table of transport services). */
static inline bool connection_has_op(enum connection connection, enum op op) {
	switch (connection) {
	case CONNECTION_UC:
		return op_is_send(op) || op_is_write(op);
	case CONNECTION_UD:
		return op_is_send(op);
	default:
		return true;
	}
}

/* The name of the option for one bit of enum job_option: "queue-pairs". */
const char *job_option_name(unsigned long option);

/* The bits whose fields do not hold their default. */
unsigned long job_options_used(const struct job *job);

uint64_t job_largest_size(const struct job *job);

/* Checks ranges and combinations; says what is wrong. -EINVAL. */
int job_validate(const struct job *job);

int job_to_json(const struct job *job, json_t **ret);

/* Reads and validates; every key must be known and of the right type. -EBADMSG (said). */
int job_from_json(const json_t *json, struct job *ret);
