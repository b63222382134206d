/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: everything that one measurement needs to know, validated once and never changed after.
 * The client makes it from its options and sends it whole, so the two sides can never disagree;
 * the server checks it again as hostile input.
 */
#pragma once

#include <jansson.h>

#include "base/atomic_word.h"
#include "base/clock.h"
#include "base/pci.h"
#include "places.h"

enum op {
	OP_SEND,
	OP_SEND_IMM,            /* send with 32 bits of immediate data */
	OP_WRITE,
	OP_WRITE_IMM,           /* write with immediate: the target sees a completion of its own */
	OP_READ,
	OP_FETCH_ADD,
	OP_COMPARE_SWAP,
	OP_ATOMIC_OP,           /* atomic_op on atomic_type, answers nothing (fi_atomic(3)) */
	OP_FETCH_ATOMIC,        /* the same, and answers what was there before */
	OP_COMPARE_ATOMIC,      /* a kind of swap, if a comparison holds */
	OP_MAX,
	OP_INVALID = -EINVAL,
};

enum kind {
	KIND_LATENCY,
	KIND_BANDWIDTH,
	KIND_TRANSFER,          /* batches of one-sided operations between pairs of devices */
	KIND_RATE,              /* messages without a pause, on several threads and queue pairs */
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
 * Which memory region a write, read or atomic names at its target (fi_cxi(7), "Optimized MRs" and FI_MR_PROV_KEY).
 * Only cxi offers the choice.
 */
enum key_mode {
	KEYS_CLIENT,            /* our own keys 0 to 99: no match list at the target */
	KEYS_MATCHING,          /* our own keys from 100 up: found through a match list */
	KEYS_PROVIDER,          /* the provider's keys */
	KEYS_MAX,
};

/* Whether PCIe may reorder what a device writes to memory (ibv_reg_mr(3)). Only verbs offers the choice. */
enum relaxed_ordering {
	RELAXED_ORDERING_AUTO,
	RELAXED_ORDERING_OFF,
	RELAXED_ORDERING_ON,
	RELAXED_ORDERING_MAX,
};

/* fi_domain(3)'s classes of traffic, by name. */
enum fabric_class {
	FABRIC_CLASS_DEFAULT,   /* the provider's */
	FABRIC_CLASS_BEST_EFFORT,
	FABRIC_CLASS_LOW_LATENCY,
	FABRIC_CLASS_DEDICATED_ACCESS,
	FABRIC_CLASS_BULK_DATA,
	FABRIC_CLASS_NETWORK_CTRL,
	FABRIC_CLASS_MAX,
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
	JOB_OUTSTANDING_MAX = 16384,    /* cxi_write_bw(1) has lists of 16382 */
	JOB_REPORT_ALL_MAX = 10000000,  /* samples kept for --report-all: 80 MB */
	JOB_QUEUE_PAIRS_MAX = 1024,
	/* only a bound for hostile input: the device says what it takes (around 1 KiB at most) */
	JOB_INLINE_MAX = 65536,
	JOB_GID_INDEX_MAX = 255,        /* 8 bits in an address vector: ibv_global_route.sgid_index */
	JOB_IB_PORT_MAX = 255,          /* 8 bits: ibv_qp_attr.port_num */
	JOB_PKEY_MAX = 65535,           /* 16 bits of a base transport header; the highest says full membership */
	JOB_PKEY_PARTITION = 0x7fff,    /* of it, the bits that name the partition; 0: none */
	JOB_SL_MAX = 15,                /* 4 bits of an InfiniBand local route header */
	JOB_TRAFFIC_CLASS_MAX = 255,    /* 8 bits of an IPv6 (and global route) header; IPv4's type of service */
	JOB_RETRY_MAX = 7,              /* 3 bits in a queue pair context; for RNR, 7 is for ever */
	JOB_TIMEOUT_EXPONENT_MAX = 31,  /* 5 bits; 0: wait for ever */
	/*
	 * 4.096 us x 2^14 = 67 ms, as perftest(1)'s -u: what a lost packet costs at least,
	 * and far above any fabric's round trip
	 */
	JOB_TIMEOUT_EXPONENT = 14,
	JOB_MTU_MIN = 256,              /* ibv_mtu(3): powers of two from here */
	JOB_MTU_MAX = 4096,
	JOB_VNI_MAX = 65535,            /* 16 bits of struct cxi_auth_key (fi_cxi(7)) */
	JOB_SVC_ID_MAX = INT32_MAX,     /* 32 bits there, and a signed number in libcxi's calls */
	JOB_DEVICES_MAX = 16,           /* of one host: eight adapters of two planes */
	JOB_DEVICES_TEXT = JOB_DEVICES_MAX * JOB_NAME_MAX,
	JOB_MEMORY_TEXT = JOB_DEVICES_MAX * PCI_ADDRESS_MAX, /* a list of GPUs */
	JOB_CPUS_TEXT = JOB_DEVICES_TEXT,       /* more than 64 numbers of four digits: one for each thread */
	JOB_BATCH_MAX = 32768,          /* transfers: as far as MORI-IO's benchmark sweeps */
	JOB_BATCHES_MAX = 16,           /* batch sizes in one sweep: 1 to 32768 by doubling */
	JOB_THREADS_MAX = 64,           /* eight for each device; more than a host's cores gain nothing */
	JOB_CHUNKS_MAX = 1024,          /* pieces of one transfer: 4 MiB each of the largest */
	JOB_PIECES_MAX = 8 * JOB_BATCH_MAX,     /* of one batch: a work request each, 64 to 256 bytes of memory */
};

#define JOB_HUGE_2M (UINT64_C(2) << 20)
#define JOB_HUGE_1G (UINT64_C(1) << 30)

#define JOB_FOOTPRINT_MAX (UINT64_C(1) << 40)  /* 1 TiB: no host that is tested has so much memory */
#define JOB_SIZE_MAX UINT64_C(4294967295)       /* 4 GiB - 1: the largest message of CXI (cxi_send_lat(1)) */

/* Options of verbs. */
struct verbs_options {
	enum connection connection;
	uint32_t ib_port, server_ib_port;       /* 0: chosen */
	int32_t gid_index, server_gid_index;    /* -1: chosen */
	uint32_t pkey;                          /* of the partition of both ends; 0: chosen */
	uint32_t mtu;                           /* bytes, a power of two; 0: what both ends and the path allow */
	/* service level; -1: what the connection manager finds with rdma_cm, else 0 */
	int32_t sl, traffic_class;
	int64_t inline_bytes;                   /* -1: automatic */
	bool srq;
	bool rdma_cm;
	/* a write's last byte may then be visible first: nothing may poll memory for it */
	enum relaxed_ordering relaxed_ordering;
	uint32_t retry, rnr_retry;
	uint32_t timeout_exponent;              /* 4.096 us x 2^n; 0: for ever */
};

/* Options of libfabric: of ofi, and of cxi, which goes through it. */
struct ofi_options {
	enum fabric_class fabric_class;
};

/* Options of cxi. */
struct cxi_options {
	int32_t svc_id, server_svc_id;          /* CXI service; -1: the provider's choice */
	int32_t vni;                            /* virtual network of both ends; -1: the provider's choice */
	bool no_idc;                            /* no immediate data commands, and nothing injected */
	bool no_ll;                             /* no low-latency command ring */
	bool rdzv;                              /* rendezvous for every send that the provider lets have it */
	bool unrestricted;                      /* writes and reads: ordered, by the NIC's other way */
	bool no_hrp;                            /* no high-rate puts */
	enum key_mode keys;
};

struct backend_facts; /* backend_facts.h */

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
	bool ignore_mismatch;                   /* with cycles: take a counter that does not prove to be a clock */
	uint64_t sizes[JOB_SIZES_MAX];
	size_t n_sizes;
	uint64_t iterations;                    /* 0: duration mode */
	uint64_t duration_ns;                   /* 0: iteration mode */
	/* before each size: messages, or a time; neither: none */
	uint64_t warmup, warmup_ns;
	uint64_t gap_ns;
	bool barrier;                           /* lat: the ends meet on the control connection before each message */
	uint32_t outstanding;                   /* messages under way, of each queue pair */
	bool bidirectional;
	bool verify;
	enum rate_unit rate_unit;
	double rate;                            /* in rate_unit */
	uint64_t interval_ns;                   /* 0: no interval lines */
	bool report_all;
	uint64_t timeout_ns;                    /* the longest time without progress */

	uint32_t queue_pairs;                   /* `batch` and `cq_moderation` of each: at most `outstanding` */
	uint32_t batch;                         /* work requests of one post list and doorbell */
	uint32_t cq_moderation;                 /* every Nth work request of a queue pair is signalled */
	/*
	 * Kinds of memory (memory_kind.h) of what either end sends from, and of what comes in there:
	 * "host", "huge:2M", "cuda:0", "cuda:near"
	 */
	char tx_memory[JOB_MEMORY_TEXT], rx_memory[JOB_MEMORY_TEXT];
	/* bytes of each buffer, over which messages are scattered; 0: as many as they need, side by side */
	uint64_t footprint;
	bool bounce;                            /* a GPU's memory is copied through host memory, message by message */
	/* of OP_ATOMIC_OP, OP_FETCH_ATOMIC and OP_COMPARE_ATOMIC; else ATOMIC_NONE */
	enum atomic_op atomic_op;
	enum atomic_type atomic_type;           /* of these, too; the other atomics work on ATOMIC_UINT64 */

	/* What one backend alone takes; job_defaults() sets what none would choose otherwise. */
	struct verbs_options verbs;
	struct ofi_options ofi;
	struct cxi_options cxi;

	/*
	 * KIND_TRANSFER and KIND_RATE only: `iterations` and `warmup` count batches or messages of each thread there,
	 * and a transfer's `batch` stays 1
	 */
	/* The initiator's, between commas; empty: one, `device`. Of verbs each may have a port and a GID: "NAME:1:3" */
	char devices[JOB_DEVICES_TEXT];
	char server_devices[JOB_DEVICES_TEXT];
	uint32_t cross_rail;                    /* device i works with the target's i + this, around */
	uint32_t batches[JOB_BATCHES_MAX];      /* transfers that are waited for together */
	size_t n_batches;
	bool consecutive;                       /* each transfer is posted by itself, instead of as a list */
	bool no_session;                        /* everything that a transfer needs is looked up anew each time */
	uint64_t buffer_bytes;                  /* of each lane, at both ends; 0: what the largest batch takes */
	uint64_t stride_bytes;                  /* from one transfer to the next; 0: they follow each other */
	uint64_t chunk_bytes;                   /* larger transfers go in pieces of so much; 0: whole */
	uint32_t max_chunks;                    /* no transfer is cut into more: then the pieces are larger */
	uint32_t threads;                       /* of the initiator; 0: one for each pair of devices */

	/* Where each end works (placement.h): "auto", "off", CPUs, a NUMA node; empty: auto, or as the server says */
	char cpu[JOB_CPUS_TEXT], server_cpu[JOB_CPUS_TEXT];
	char numa[JOB_NAME_MAX], server_numa[JOB_NAME_MAX];
	/* Devices whose jobs run at the same time, this one's too, between commas: their cores are shared out as one */
	char rails[JOB_DEVICES_TEXT], server_rails[JOB_DEVICES_TEXT];
	/* "K/N": each of these devices has N such jobs, and this one is number K of its device; empty: 1/1 */
	char slot[JOB_NAME_MAX], server_slot[JOB_NAME_MAX];
};

static inline bool job_warms_up(const struct job *job) {
	return job->warmup > 0 || job->warmup_ns > 0;
}

/* Entries of a list between commas; an empty text has one, which is empty. */
uint32_t job_list_length(const char *list);

/* Entry `index` of a list; false where it is too long for a name. */
bool job_list_entry(const char *list, uint32_t index, char ret[JOB_NAME_MAX]);

/* A job in which everything that has a default holds it, and the rest is zero: every job begins so. */
void job_defaults(struct job *ret);

const char *op_name(int op);
int op_from_name(const char *name);             /* -EINVAL: no such operation */
const char *kind_name(int kind);
const char *definition_name(int definition);
const char *completion_mode_name(int mode);
const char *connection_name(int connection);    /* "RC", "UC", "UD": as in records */
const char *key_mode_name(int mode);
const char *fabric_class_name(int fabric_class);
int fabric_class_from_name(const char *name);   /* -EINVAL: there is none of that name */

static inline bool op_is_atomic(enum op op) {
	return op == OP_FETCH_ADD || op == OP_COMPARE_SWAP || op == OP_ATOMIC_OP || op == OP_FETCH_ATOMIC ||
	       op == OP_COMPARE_ATOMIC;
}

/* Whether job.atomic_op says what it does. */
static inline bool op_is_general_atomic(enum op op) {
	return op == OP_ATOMIC_OP || op == OP_FETCH_ATOMIC || op == OP_COMPARE_ATOMIC;
}

static inline bool op_is_send(enum op op) {
	return op == OP_SEND || op == OP_SEND_IMM;
}

static inline bool op_is_write(enum op op) {
	return op == OP_WRITE || op == OP_WRITE_IMM;
}

/*
 * A service level or traffic class in force: as asked for, else 0; -1 where the connection manager has yet to find it.
 */
static inline int32_t job_lane(const struct job *job, int32_t asked) {
	return asked >= 0 || job->verbs.rdma_cm ? asked : 0;
}

/* Whether every message of it takes a receive of the target, who then sees a completion. */
static inline bool op_takes_receive(enum op op) {
	return op_is_send(op) || op == OP_WRITE_IMM;
}

/*
 * Whether a connection of this kind has the operation (InfiniBand Architecture Specification, volume 1,
 * table of transport services).
 */
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

uint64_t job_largest_size(const struct job *job);

/* The form of --cpu and --numa: auto, off, or a list; or a number. Empty is auto. -EINVAL, -ERANGE. */
int job_check_cpu(const char *text);
int job_check_numa(const char *text);

/* "K/N", K from 1 to N, N up to 1024; -EINVAL. An empty text is 1/1. */
int job_slot(const char *text, unsigned *ret_number, unsigned *ret_of);

/* Bytes of what an atomic works on: sizes are multiples of it. 1 for everything else. */
static inline uint64_t job_word_bytes(const struct job *job) {
	return op_is_atomic(job->op) ? atomic_type_bytes(job->atomic_type) : 1;
}

/* Checks ranges and combinations, for every backend that Perch knows; says what is wrong. -EINVAL. */
int job_validate(const struct job *job);

/*
 * Of a valid job of KIND_LATENCY: what it is, or DEFINITION_AUTO where only the provider can tell whether
 * a write is seen to arrive.
 */
enum definition job_definition(const struct job *job);

/* Relaxed ordering in force: unless asked otherwise of all but latency, where a target may poll the last byte. */
bool job_relaxed_ordering(const struct job *job);

/* Why a target that polls the last byte of a write cannot see it arrive; NULL: it can. */
const char *job_unseen_write(const struct job *job);

/*
 * Keys as they come to be used: reads of optimized regions are always restricted,
 * so unrestricted ones go through a match list.
 */
enum key_mode job_keys(const struct job *job);

/* The rest of this file concerns jobs that have lanes: job_transfer.c. */

/* The part of job_validate() that only transfers, or message rates, have. -EINVAL (said, EXIT_USAGE). */
int job_validate_transfer(const struct job *job, const struct backend_facts *b);
int job_validate_rate(const struct job *job, const struct backend_facts *b);

/* Fills in what the command line has left open. */
void job_complete_lanes(struct job *job);

/* Pairs of devices, 1 to JOB_DEVICES_MAX. */
uint32_t job_pairs(const struct job *job);

/*
 * Lanes of the whole job: each is one thread's part of one pair, with queue pairs and a buffer of its own. Lane i
 * belongs to pair i % job_pairs() and to thread i % job->threads: one of the two numbers is a multiple of the other.
 */
static inline uint32_t job_lanes(const struct job *job) {
	return MAX(job_pairs(job), job->threads);
}

/* Whether threads do its work, each on lanes of its own. */
static inline bool job_has_lanes(const struct job *job) {
	return job->kind == KIND_TRANSFER || job->kind == KIND_RATE;
}

/* lat and bw: messages of all queue pairs that may be under way at a time. */
static inline uint32_t job_under_way(const struct job *job) {
	return job->outstanding * job->queue_pairs;
}

/* Messages that have memory at a time, at least: an echo needs a second place while it answers the first. */
static inline uint32_t job_least_window(const struct job *job) {
	return MAX(job_under_way(job), 2u);
}

/* Flows between a pair of devices: its queue pairs, each of which takes one way through a fabric. */
static inline uint32_t job_flows(const struct job *job) {
	return job->queue_pairs * (job_has_lanes(job) ? MAX(job->threads / job_pairs(job), 1u) : 1);
}

/* Writes the devices of a lane's two ends into job->device and job->server_device, in a lane's own copy of the job. */
void job_for_lane(const struct job *job, uint32_t lane, struct job *ret);

/*
 * How the batches of one size are laid out, and cut. With --footprint each batch of a turn has places of its own, and
 * transfers are numbered through all of them; else every batch has the same ones.
 */
struct shape {
	uint64_t size;                  /* bytes */
	struct places places;           /* of transfers */
	uint64_t chunk;                 /* bytes of a piece; a transfer's last may have fewer */
	uint32_t chunks;                /* pieces of a transfer */
	uint32_t batch;                 /* transfers */
	uint32_t turns;                 /* batches until the first one's places are used again */
};

void shape_of(const struct job *job, uint64_t size, uint32_t batch, struct shape *ret);

static inline uint64_t shape_span(const struct shape *s) {
	return (s->batch - 1) * s->places.stride + s->size;
}

/* Payload of a batch. */
static inline uint64_t shape_bytes(const struct shape *s) {
	return s->batch * s->size;
}

static inline uint64_t shape_pieces(const struct shape *s) {
	return (uint64_t) s->batch * s->chunks;
}

/* Of all batches of a turn; numbered transfer by transfer, as are the pieces of a batch. */
static inline uint64_t shape_all_pieces(const struct shape *s) {
	return shape_pieces(s) * s->turns;
}

/* The place of a transfer, by its number in the whole phase. */
static inline uint32_t shape_place(const struct shape *s, uint64_t transfer) {
	return (uint32_t) (transfer % (s->batch * s->turns));
}

static inline uint64_t shape_piece_offset(const struct shape *s, uint32_t piece) {
	return place_in_region(&s->places, piece / s->chunks) + piece % s->chunks * s->chunk;
}

static inline uint64_t shape_piece_size(const struct shape *s, uint32_t piece) {
	return piece % s->chunks + 1 < s->chunks ? s->chunk : s->size - (s->chunks - 1) * s->chunk;
}

/* KIND_RATE: work requests of a queue pair that have a number of their own, and a depth of whole lists. */
uint32_t job_rate_slots(const struct job *job);
uint32_t job_rate_depth(const struct job *job);

/* Refuses more messages than have a place: `depth` of each queue pair. */
int job_validate_depth(const struct job *job, uint32_t depth);

/* KIND_RATE: where the messages of a queue pair lie. */
void job_rate_places(const struct job *job, struct places *ret);

/* The most pieces, and the most bytes, that any batch of the job has, or that a lane of a message rate has. */
uint64_t job_most_pieces(const struct job *job);
uint64_t job_buffer(const struct job *job);

int job_to_json(const struct job *job, json_t **ret);

/* Reads and validates; every key must be known and of the right type. -EBADMSG (said). */
int job_from_json(const json_t *json, struct job *ret);
