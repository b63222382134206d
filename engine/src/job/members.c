/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a job's members. A new one is an entry here (and a setter where no type fits), and its use:
 * command line, JSON, defaults, ranges, help, manual and completion are made from the entry.
 */
#include <inttypes.h>

#include "backend_facts.h"
#include "job_names.h"
#include "members.h"
#include "memory_kind.h"
#include "parse.h"

#define FOR(command) (1u << COMMAND_##command)
#define MEASURE (FOR(LAT) | FOR(BW))
#define LANES (FOR(TRANSFER) | FOR(RATE))
#define EVERY (MEASURE | LANES)

/* A field, in the width and form that it has; an enum's is in .names. An alias sets a field that has its own entry. */
#define ALIAS(field) \
	.of_job = true, .offset = offsetof(struct job, field), .size = sizeof(((struct job *) NULL)->field)
#define FIELD_AT(name, field) \
	.key = name, ALIAS(field), .form = _Generic(((struct job *) NULL)->field, \
		bool: FORM_BOOL, double: FORM_REAL, char *: FORM_TEXT, uint64_t: FORM_U64, int64_t: FORM_I64, \
		int32_t: FORM_I32, default: FORM_U32)
#define MEMBER(field) FIELD_AT(#field, field)
#define MEMBER_OF(backend, field) FIELD_AT(#field, backend.field)
/* Who takes it. With lanes, every backend may have several queue pairs (or endpoints, or connections), and lists. */
#define ON(backend) (1u << BACKEND_##backend)
#define LIBFABRIC (ON(OFI) | ON(CXI))
#define WITH_LANES (1u << KIND_TRANSFER | 1u << KIND_RATE)
#define WORDS(table) .choices = table, .names = table

/* Both fit twice into the signed 64 bits of JSON's integers; no measurement comes near them. */
#define COUNT_MAX UINT64_C(1000000000000000)

/* Words for messages and completion, where the table has a setter. */
static const char *const backend_words[] = { "tcp", "verbs", "ofi", "cxi", "null", NULL };
static const char *const provider_words[] = { "tcp", "shm", "verbs", "cxi", "efa", NULL };
static const char *const op_words[] = {
	"send", "send-imm", "write", "write-imm", "read", "fetch-add", "compare-swap", "atomic", "atomic-op",
	"fetch-atomic", "compare-atomic", NULL
};
static const char *const mtu_words[] = { "256", "512", "1024", "2048", "4096", NULL };
static const char *const memory_words[] = {
	"host", "huge:2M", "huge:1G", "cuda", "cuda:near", "rocm", "rocm:near", "ze", "ze:near", NULL
};
static const char *const placement_words[] = { "auto", "off", NULL };
static const char *const huge_words[] = { "2M", "1G", NULL };

_Static_assert(ELEMENTSOF(backend_words) == BACKEND_ID_MAX + 1, "enum backend_id");
_Static_assert(ELEMENTSOF(op_words) == OP_MAX + 2, "enum op, and \"atomic\"");

static int set_backend(struct job *job, const char *value) {
	return backend_facts_of(value) ? copy_string(job->backend, sizeof(job->backend), value) : -EINVAL;
}

static int set_op(struct job *job, const char *value) {
	int op = op_from_name(value);

	if (op < 0)
		return -EINVAL;
	job->op = (enum op) op;
	return 0;
}

static int set_size(struct job *job, const char *value) {
	return parse_sizes(value, job->sizes, &job->n_sizes);
}

/* Whole numbers here: "1K" transfers would be a unit of bytes. */
static int set_batch(struct job *job, const char *value) {
	uint64_t n;
	int r;

	if (job->kind == KIND_TRANSFER)
		return parse_batches(value, job->batches, &job->n_batches);
	r = parse_u64(value, &n);
	if (r < 0)
		return r;
	if (n < 1 || n > JOB_OUTSTANDING_MAX)
		return -ERANGE;
	job->batch = (uint32_t) n;
	return 0;
}

static int set_buffer(struct job *job, const char *value) {
	return parse_size(value, &job->buffer_bytes);
}

static int set_stride(struct job *job, const char *value) {
	return parse_size(value, &job->stride_bytes);
}

static int set_footprint(struct job *job, const char *value) {
	int r = parse_size(value, &job->footprint);

	return r == 0 && (job->footprint == 0 || job->footprint > JOB_FOOTPRINT_MAX) ? -ERANGE : r;
}

static int set_chunk(struct job *job, const char *value) {
	return parse_size(value, &job->chunk_bytes);
}

static int set_rate(struct job *job, const char *value) {
	return parse_rate(value, &job->rate_unit, &job->rate);
}

/* A bare number counts messages, as perftest's and HPE's --warmup do. */
static int set_warmup(struct job *job, const char *value) {
	uint64_t n = 0, ns = 0;
	int r = parse_u64(value, &n);

	if (r == -EINVAL)
		r = parse_duration(value, 0, &ns);
	if (r < 0)
		return r;
	if (n > COUNT_MAX || ns > JOB_TIME_MAX)
		return -ERANGE;
	job->warmup = n;
	job->warmup_ns = ns;
	return 0;
}

/* What this machine has is asked where it is measured: the command may be meant for another. */
static int set_cpus(char ret[JOB_CPUS_TEXT], const char *value) {
	int r = job_check_cpu(value);

	return r < 0 ? r : copy_string(ret, JOB_CPUS_TEXT, value);
}

static int set_cpu(struct job *job, const char *value) {
	return set_cpus(job->cpu, value);
}

static int set_server_cpu(struct job *job, const char *value) {
	return set_cpus(job->server_cpu, value);
}

static int set_slot_text(char ret[JOB_NAME_MAX], const char *value) {
	unsigned number, of;
	int r = job_slot(value, &number, &of);

	return r < 0 ? r : copy_string(ret, JOB_NAME_MAX, value);
}

static int set_slot(struct job *job, const char *value) {
	return set_slot_text(job->slot, value);
}

static int set_server_slot(struct job *job, const char *value) {
	return set_slot_text(job->server_slot, value);
}

static int set_node(char ret[JOB_NAME_MAX], const char *value) {
	int r = job_check_numa(value);

	return r < 0 ? r : copy_string(ret, JOB_NAME_MAX, value);
}

static int set_numa(struct job *job, const char *value) {
	return set_node(job->numa, value);
}

static int set_server_numa(struct job *job, const char *value) {
	return set_node(job->server_numa, value);
}

static int set_mtu(struct job *job, const char *value) {
	uint64_t n;
	int r;

	r = parse_u64(value, &n);
	if (r < 0)
		return r;
	if (n < JOB_MTU_MIN || n > JOB_MTU_MAX || (n & (n - 1)))
		return -ERANGE;
	job->verbs.mtu = (uint32_t) n;
	return 0;
}

/* As sysfs writes it, or decimal. */
static int set_pkey(struct job *job, const char *value) {
	bool hex = strncmp(value, "0x", 2) == 0;
	uint64_t n;
	int r;

	if (hex && !value[2 + strspn(value + 2, "0123456789abcdefABCDEF")] && value[2])
		r = sscanf(value + 2, "%5" SCNx64, &n) == 1 && strlen(value) <= 6 ? 0 : -ERANGE;
	else
		r = parse_u64(value, &n);
	if (r < 0)
		return r;
	if ((n & JOB_PKEY_PARTITION) == 0 || n > JOB_PKEY_MAX)
		return -ERANGE;
	job->verbs.pkey = (uint32_t) n;
	return 0;
}

static int set_memory_name(char ret[JOB_MEMORY_TEXT], const char *value) {
	struct memory_kind kind;
	int r;

	r = memory_kind_parse(value, &kind);
	if (r == 0 && memory_list_length(value) > 1)
		r = copy_string(ret, JOB_MEMORY_TEXT, value);
	else if (r == 0)
		memory_kind_format(&kind, ret);
	return r;
}

static int set_tx_memory(struct job *job, const char *value) {
	return set_memory_name(job->tx_memory, value);
}

static int set_rx_memory(struct job *job, const char *value) {
	return set_memory_name(job->rx_memory, value);
}

static int set_memory(struct job *job, const char *value) {
	int r = set_tx_memory(job, value);

	return r < 0 ? r : set_rx_memory(job, value);
}

static int set_huge(struct job *job, const char *value) {
	return streq(value, "2M") ? set_memory(job, "huge:2M")
	       : streq(value, "1G") ? set_memory(job, "huge:1G") : -EINVAL;
}

/* A number for the packet's header, or a name for the fabric: one option for two choices, as few backends have both. */
static int set_traffic_class(struct job *job, const char *value) {
	int named = fabric_class_from_name(value);
	uint64_t n;
	int r;

	if (named > 0) {
		job->ofi.fabric_class = (enum fabric_class) named;
		return 0;
	}
	r = parse_u64(value, &n);
	if (r < 0)
		return r;
	if (n > JOB_TRAFFIC_CLASS_MAX)
		return -ERANGE;
	job->verbs.traffic_class = (int32_t) n;
	return 0;
}

static int set_atomic_op(struct job *job, const char *value) {
	int op = atomic_op_from_name(value);

	if (op < 0)
		return op;
	job->atomic_op = (enum atomic_op) op;
	return 0;
}

static int set_atomic_type(struct job *job, const char *value) {
	int type = atomic_type_from_name(value);

	if (type < 0)
		return type;
	job->atomic_type = (enum atomic_type) type;
	return 0;
}

const struct option_entry job_members[] = {
	{ .name = "backend", .metavar = "NAME", .section = SECTION_WHAT, .commands = EVERY, .common = EVERY,
	  .brief = "Data path: tcp (default), verbs, ofi, cxi, null",
	  .help = "Data path to measure: tcp, verbs, ofi, cxi or null.", .fallback = "tcp", .type = OPTION_CUSTOM,
	  .set_job = set_backend, MEMBER(backend), .choices = backend_words },
	{ .name = "provider", .metavar = "NAME", .section = SECTION_WHAT, .commands = EVERY,
	  .help = "libfabric provider of the ofi backend, as in fi_info(1): tcp, shm, verbs, cxi, efa.",
	  .fallback = "the best usable one", .type = OPTION_STRING, MEMBER(provider), .choices = provider_words,
	  .accepts = "a provider that 'perch devices' lists" },
	{ .name = "device", .letter = 'd', .metavar = "NAME", .section = SECTION_WHAT, .commands = EVERY | FOR(SERVE),
	  .common = MEASURE | FOR(RATE), .brief = "Own device, such as mlx5_0 or eth0",
	  .help = "Own device; each end names its own.", .fallback = "the one that reaches the peer",
	  .type = OPTION_STRING, MEMBER(device), .value = VALUE_DEVICE,
	  .accepts = "a device that 'perch devices' lists" },
	{ .name = "server-device", .metavar = "NAME", .section = SECTION_WHAT, .commands = EVERY,
	  .help = "The server's device; overrides the server's own --device.", .fallback = "the server's choice",
	  .type = OPTION_STRING, MEMBER(server_device),
	  .accepts = "a device that 'perch devices' lists on the server" },
	{ .name = "op", .metavar = "OP", .section = SECTION_WHAT, .commands = EVERY, .common = EVERY,
	  .brief = "Operation, such as send, write or read",
	  .help = "Operation: send, send-imm, write, write-imm, read, fetch-add (or atomic), compare-swap; with "
		  "--atomic-op: atomic-op, fetch-atomic, compare-atomic.",
	  .fallback = "send; write for transfer and rate, which have write and read (rate: send, too)",
	  .type = OPTION_CUSTOM,
	  .set_job = set_op, MEMBER(op), .names = op_names, .choices = op_words },
	{ .name = "atomic-op", .metavar = "OP", .section = SECTION_WHAT, .commands = MEASURE,
	  .backends = LIBFABRIC,
	  .help = "Operation of atomic-op and fetch-atomic: min, max, sum, prod, lor, land, bor, band, lxor, bxor, "
		  "write, read (fetch-atomic only). Of compare-atomic: cswap, cswap-ne, -le, -lt, -ge, -gt, mswap.",
	  .fallback = "sum; cswap", .type = OPTION_CUSTOM, .set_job = set_atomic_op, MEMBER(atomic_op),
	  .names = atomic_op_names, .choices = &atomic_op_names[ATOMIC_NONE + 1] },
	{ .name = "atomic-type", .metavar = "TYPE", .section = SECTION_WHAT, .commands = MEASURE,
	  .backends = LIBFABRIC,
	  .help = "Operand type of atomics: int8 to int128, uint8 to uint128, float, double, float-complex or "
		  "double-complex.", .fallback = "uint64", .type = OPTION_CUSTOM, .set_job = set_atomic_type,
	  MEMBER(atomic_type), .unset = ATOMIC_UINT64, .names = atomic_type_names,
	  .choices = atomic_type_names },
	{ .name = "size", .letter = 's', .metavar = "MIN[:MAX[:STEP]]", .section = SECTION_WHAT, .commands = EVERY,
	  .common = EVERY, .brief = "Message bytes: 8, 64K, or 8:1M (doubling)",
	  .help = "Message size in bytes: one size, MIN doubled up to MAX, or MIN to MAX by STEP. K, M and G are "
		  "powers of 1024.", .fallback = "8 for lat, 64K for bw and transfer, 64 for rate",
	  .type = OPTION_CUSTOM, .set_job = set_size, .of_job = true,
	  .accepts = "MIN, MIN:MAX or MIN:MAX:STEP in bytes from 1 to 4294967295, at most 128 sizes, for example "
		  "8:64K" },
	{ .name = "definition", .metavar = "WHAT", .section = SECTION_WHAT, .commands = FOR(LAT),
	  .help = "Definition of latency: half_round_trip or completion, where the operation has both.",
	  .fallback = "half_round_trip where possible", .type = OPTION_CHOICE, MEMBER(definition),
	  WORDS(definition_names) },
	{ .name = "iterations", .letter = 'n', .metavar = "N", .section = SECTION_PACE, .commands = EVERY,
	  .common = EVERY, .brief = "Messages (transfer: batches) for each size",
	  .help = "Messages to measure for each size; for rate, of each thread. Excludes --duration.",
	  .fallback = "1000 for lat, 5000 for bw, 100 batches for transfer", .type = OPTION_COUNT,
	  MEMBER(iterations), .min = 1, .max = COUNT_MAX,
	  .accepts = "a whole number of messages from 1 to 1000000000000000" },
	{ .name = "duration", .letter = 'D', .metavar = "TIME", .section = SECTION_PACE, .commands = EVERY,
	  .common = MEASURE | FOR(RATE), .brief = "Seconds for each size, instead of -n",
	  .help = "Time to measure for each size, such as 5s or 2m; excludes --iterations.", .fallback = "2s for rate",
	  .type = OPTION_DURATION, MEMBER(duration_ns), .min = 1, .max = JOB_TIME_MAX, .unit = NSEC_PER_SEC,
	  .accepts = "a time above 0 and below a year such as 500ms, 10s, 5m or 1h (a bare number is seconds)" },
	{ .name = "warmup", .metavar = "TIME", .section = SECTION_PACE, .commands = EVERY,
	  .help = "Time before the measurement of each size, such as 500ms; a bare number counts messages "
		  "(transfer: batches; rate: of each thread).", .fallback = "200ms", .type = OPTION_CUSTOM,
	  .set_job = set_warmup, MEMBER(warmup),
	  .accepts = "a time below a year such as 500ms or 2s, or messages from 0 to 1000000000000000" },
	{ .name = "gap", .metavar = "TIME", .section = SECTION_PACE, .commands = FOR(LAT),
	  .help = "Pause between two messages; a bare number is microseconds.", .fallback = "0",
	  .type = OPTION_DURATION, MEMBER(gap_ns), .max = 60 * NSEC_PER_SEC, .unit = NSEC_PER_USEC,
	  .accepts = "a time of at most 1m such as 10us or 1ms (a bare number is microseconds)" },
	{ .name = "barrier", .section = SECTION_PACE, .commands = FOR(LAT),
	  .help = "Both ends meet before each message, over the control connection.", .type = OPTION_FLAG,
	  MEMBER(barrier) },
	{ .name = "rate", .metavar = "RATE", .section = SECTION_PACE, .commands = MEASURE,
	  .help = "Pace, such as 1000msg/s or 5Gb/s. A delayed message counts from the time at which it was due.",
	  .fallback = "as fast as possible", .type = OPTION_CUSTOM, .set_job = set_rate, MEMBER(rate),
	  .accepts = "a number above 0 with its unit, such as 1000msg/s, 10Kmsg/s, 100Mb/s or 5Gb/s" },
	{ .name = "outstanding", .metavar = "N", .section = SECTION_PACE, .commands = EVERY,
	  .help = "Messages outstanding at a time on each queue pair. lat has 1.",
	  .fallback = "1 for lat, 64 for bw, 512 for transfer and rate", .type = OPTION_COUNT, MEMBER(outstanding),
	  .min = 1, .max = JOB_OUTSTANDING_MAX, .accepts = "a whole number from 1 to 16384" },
	{ .name = "bidirectional", .section = SECTION_PACE, .commands = FOR(BW),
	  .help = "Measure both directions at once and add them up.", .type = OPTION_FLAG, MEMBER(bidirectional) },
	{ .name = "completion", .metavar = "MODE", .section = SECTION_TIMING, .commands = EVERY,
	  .help = "How to wait for a completion: busy polls and takes a core, event sleeps.", .fallback = "busy",
	  .type = OPTION_CHOICE, MEMBER(completion), WORDS(completion_mode_names) },
	{ .name = "clock", .metavar = "KIND", .section = SECTION_TIMING, .commands = EVERY,
	  .help = "Clock of the measurement: monotonic, or cycles where the time stamp counter is invariant.",
	  .fallback = "monotonic", .type = OPTION_CHOICE, MEMBER(clock), WORDS(clock_names) },
	{ .name = "ignore-frequency-mismatch", .section = SECTION_TIMING, .commands = EVERY,
	  .help = "With --clock cycles: measure even if the counter cannot be verified as a clock.",
	  .type = OPTION_FLAG, MEMBER(ignore_mismatch) },
	{ .name = "cpu", .metavar = "LIST", .section = SECTION_TIMING, .commands = EVERY | FOR(SERVE),
	  .help = "CPUs of this end, such as 4-7: each thread has a core of its own among them. auto: cores near the "
		  "device, none where both ends are on one machine. off: none.",
	  .fallback = "auto", .type = OPTION_CUSTOM, .set_job = set_cpu, MEMBER(cpu), .choices = placement_words,
	  .accepts = "auto, off, or CPU numbers and ranges from 0 to 1023, such as 4-7,12" },
	{ .name = "server-cpu", .metavar = "LIST", .section = SECTION_TIMING, .commands = EVERY,
	  .help = "The same of the server.", .fallback = "the server's --cpu", .type = OPTION_CUSTOM,
	  .set_job = set_server_cpu, MEMBER(server_cpu), .choices = placement_words,
	  .accepts = "auto, off, or CPU numbers and ranges from 0 to 1023, such as 4-7,12" },
	{ .name = "numa", .metavar = "NODE", .section = SECTION_TIMING, .commands = EVERY | FOR(SERVE),
	  .help = "NUMA node of this end's memory, and of its cores where --cpu names none. auto: the device's. "
		  "off: memory from anywhere.",
	  .fallback = "auto", .type = OPTION_CUSTOM, .set_job = set_numa, MEMBER(numa), .choices = placement_words,
	  .accepts = "auto, off, or the number of a NUMA node" },
	{ .name = "server-numa", .metavar = "NODE", .section = SECTION_TIMING, .commands = EVERY,
	  .help = "The same of the server.", .fallback = "the server's --numa", .type = OPTION_CUSTOM,
	  .set_job = set_server_numa, MEMBER(server_numa), .choices = placement_words,
	  .accepts = "auto, off, or the number of a NUMA node" },
	{ .name = "rails", .metavar = "NAME,...", .section = SECTION_TIMING, .commands = MEASURE,
	  .help = "Devices of this end whose commands run at the same time, this one's too. With --cpu auto each has a "
		  "core of its own, if there are enough.",
	  .fallback = "this command's alone", .type = OPTION_STRING, MEMBER(rails), .value = VALUE_DEVICE,
	  .accepts = "1 to 16 devices that 'perch devices' lists, between commas" },
	{ .name = "server-rails", .metavar = "NAME,...", .section = SECTION_TIMING, .commands = MEASURE,
	  .help = "The same of the server.", .fallback = "this command's alone", .type = OPTION_STRING,
	  MEMBER(server_rails), .accepts = "1 to 16 devices that 'perch devices' lists there, between commas" },
	{ .name = "slot", .metavar = "K/N", .section = SECTION_TIMING, .commands = MEASURE,
	  .help = "Which one this command is of the N that each of --rails has here at the same time. All of them "
		  "share out the cores.",
	  .fallback = "1/1", .type = OPTION_CUSTOM, .set_job = set_slot, MEMBER(slot),
	  .accepts = "K/N, K from 1 to N, N up to 1024" },
	{ .name = "server-slot", .metavar = "K/N", .section = SECTION_TIMING, .commands = MEASURE,
	  .help = "The same of the server.", .fallback = "1/1", .type = OPTION_CUSTOM, .set_job = set_server_slot,
	  MEMBER(server_slot), .accepts = "K/N, K from 1 to N, N up to 1024" },
	{ .name = "connection", .metavar = "KIND", .section = SECTION_VERBS, .commands = MEASURE,
	  .backends = ON(VERBS),
	  .help = "Transport of the queue pairs: rc (all operations), uc (send, write) or ud (send; at most one "
		  "packet a message).", .fallback = "rc", .type = OPTION_CHOICE, MEMBER_OF(verbs, connection),
	  WORDS(connection_names) },
	{ .name = "ib-port", .metavar = "N", .section = SECTION_VERBS, .commands = EVERY | FOR(SERVE),
	  .backends = ON(VERBS), .help = "Own port of the device, from 1; each end names its own.",
	  .fallback = "the first active one", .type = OPTION_COUNT, MEMBER_OF(verbs, ib_port), .min = 1,
	  .max = JOB_IB_PORT_MAX, .accepts = "a port of the device, from 1 to 255" },
	{ .name = "server-ib-port", .metavar = "N", .section = SECTION_VERBS, .commands = EVERY,
	  .backends = ON(VERBS), .help = "The server's port of its device.", .fallback = "the server's choice",
	  .type = OPTION_COUNT, MEMBER_OF(verbs, server_ib_port), .min = 1, .max = JOB_IB_PORT_MAX,
	  .accepts = "a port of the server's device, from 1 to 255" },
	{ .name = "gid-index", .letter = 'x', .metavar = "N", .section = SECTION_VERBS,
	  .commands = EVERY | FOR(SERVE), .backends = ON(VERBS), .common = MEASURE,
	  .brief = "Own GID index (default: RoCE v2 of the path)",
	  .help = "Own index in the port's GID table; each end names its own.",
	  .fallback = "RoCE v2 of the interface that reaches the peer; none on InfiniBand", .type = OPTION_COUNT,
	  MEMBER_OF(verbs, gid_index), .unset = -1, .max = JOB_GID_INDEX_MAX,
	  .accepts = "an index that 'perch devices' lists, from 0 to 255" },
	{ .name = "server-gid-index", .metavar = "N", .section = SECTION_VERBS, .commands = EVERY,
	  .backends = ON(VERBS), .help = "The server's index in its GID table.",
	  .fallback = "the server's choice", .type = OPTION_COUNT, MEMBER_OF(verbs, server_gid_index), .unset = -1,
	  .max = JOB_GID_INDEX_MAX, .accepts = "an index that 'perch devices' lists on the server, from 0 to 255" },
	{ .name = "pkey", .metavar = "KEY", .section = SECTION_VERBS, .commands = EVERY,
	  .backends = ON(VERBS), .help = "Partition key of both ends, such as 0x8001; each finds its index.",
	  .fallback = "the first that makes the port a full member; with --rdma-cm, the connection manager's",
	  .type = OPTION_CUSTOM, .set_job = set_pkey, MEMBER_OF(verbs, pkey), .min = 1, .max = JOB_PKEY_MAX,
	  .accepts = "a partition key from 0x1 to 0xffff, such as 0x8001" },
	{ .name = "mtu", .metavar = "BYTES", .section = SECTION_VERBS, .commands = EVERY, .backends = ON(VERBS),
	  .help = "Path MTU: payload bytes of one packet.",
	  .fallback = "the smaller active MTU of both ends; with --rdma-cm, at most the connection manager's",
	  .type = OPTION_CUSTOM, .set_job = set_mtu, MEMBER_OF(verbs, mtu), .min = JOB_MTU_MIN, .max = JOB_MTU_MAX,
	  .choices = mtu_words },
	{ .name = "sl", .metavar = "N", .section = SECTION_VERBS, .commands = EVERY, .backends = ON(VERBS),
	  .help = "Service level: the InfiniBand virtual lane, or the RoCE priority.",
	  .fallback = "0; with --rdma-cm, the connection manager's", .type = OPTION_COUNT, MEMBER_OF(verbs, sl),
	  .unset = -1, .max = JOB_SL_MAX, .accepts = "a service level from 0 to 15" },
	{ .name = "traffic-class", .metavar = "CLASS", .section = SECTION_VERBS, .commands = EVERY,
	  .help = "Traffic class of the packets. verbs: DSCP x 4 + ECN. ofi and cxi: best-effort, low-latency, "
		  "dedicated-access, bulk-data or network-ctrl.",
	  .fallback = "0; with --rdma-cm, the connection manager's; for ofi and cxi the provider's",
	  .type = OPTION_CUSTOM, .set_job = set_traffic_class, .of_job = true,
	  .backends = ON(VERBS) | LIBFABRIC, .choices = &fabric_class_names[FABRIC_CLASS_DEFAULT + 1],
	  .accepts = "a number from 0 to 255, or best-effort, low-latency, dedicated-access, bulk-data or "
		  "network-ctrl" },
	{ .name = "tos", .metavar = "N", .section = SECTION_VERBS, .commands = EVERY,
	  .backends = ON(VERBS), .help = "The same as --traffic-class with a number.",
	  .type = OPTION_COUNT, ALIAS(verbs.traffic_class), .max = JOB_TRAFFIC_CLASS_MAX,
	  .accepts = "a number from 0 to 255" },
	{ .name = "queue-pairs", .letter = 'q', .metavar = "N", .section = SECTION_VERBS,
	  .commands = FOR(BW) | LANES, .backends = ON(VERBS), .any_backend = WITH_LANES, .common = FOR(BW) | LANES,
	  .brief = "Queue pairs (default: 1)",
	  .help = "Queue pairs; in transfer and rate of each thread. Over ofi and tcp, endpoints and connections.",
	  .fallback = "1", .type = OPTION_COUNT, MEMBER(queue_pairs), .unset = 1,
	  .min = 1, .max = JOB_QUEUE_PAIRS_MAX, .accepts = "a whole number from 1 to 1024" },
	{ .name = "batch", .metavar = "N", .section = SECTION_VERBS, .commands = FOR(BW) | LANES,
	  .backends = ON(VERBS) | LIBFABRIC, .any_backend = WITH_LANES, .common = FOR(TRANSFER),
	  .brief = "Transfers that start together: 32, or 1:32768",
	  .help = "bw and rate: work requests of one post list, which rings the doorbell once. transfer: transfers "
		  "that start together; MIN or MIN:MAX (MIN doubled up to MAX).",
	  .fallback = "1; 32 for rate", .type = OPTION_CUSTOM,
	  .set_job = set_batch, MEMBER(batch), .unset = 1, .min = 1, .max = JOB_OUTSTANDING_MAX,
	  .accepts = "for bw and rate a whole number from 1 to --outstanding, 16384 at most; for transfer 1 to "
		  "32768, such as 128 or 1:32768" },
	{ .name = "cq-moderation", .metavar = "N", .section = SECTION_VERBS, .commands = FOR(BW) | FOR(RATE),
	  .backends = ON(VERBS), .any_backend = 1u << KIND_RATE,
	  .help = "Request a completion for every Nth message of a queue pair only; in rate, for the post list that "
		  "has it.", .fallback = "1; 64 for rate",
	  .type = OPTION_COUNT, MEMBER(cq_moderation), .unset = 1, .min = 1, .max = JOB_OUTSTANDING_MAX,
	  .accepts = "a whole number from 1 to --outstanding, 16384 at most" },
	{ .name = "inline", .metavar = "BYTES", .section = SECTION_VERBS, .commands = EVERY,
	  .backends = ON(VERBS),
	  .help = "Largest message that is sent inline, within its work request; 0: none.",
	  .fallback = "for lat and rate as perftest, 188 to 236; else 0", .type = OPTION_COUNT,
	  MEMBER_OF(verbs, inline_bytes), .unset = -1, .max = JOB_INLINE_MAX, .accepts = "bytes from 0 to 65536" },
	{ .name = "srq", .section = SECTION_VERBS, .commands = MEASURE, .backends = ON(VERBS),
	  .help = "Receive through one shared receive queue.", .type = OPTION_FLAG, MEMBER_OF(verbs, srq) },
	{ .name = "rdma-cm", .section = SECTION_VERBS, .commands = EVERY, .backends = ON(VERBS),
	  .help = "Connect through the RDMA connection manager.", .type = OPTION_FLAG, MEMBER_OF(verbs, rdma_cm) },
	{ .name = "relaxed-ordering", .metavar = "MODE", .section = SECTION_VERBS, .commands = EVERY,
	  .backends = ON(VERBS),
	  .help = "Whether PCIe may reorder what the device writes to memory: on, off, or auto.",
	  .fallback = "auto: on, but off for lat in host memory", .type = OPTION_CHOICE,
	  MEMBER_OF(verbs, relaxed_ordering),
	  WORDS(relaxed_ordering_names) },
	{ .name = "retry", .metavar = "N", .section = SECTION_VERBS, .commands = EVERY, .backends = ON(VERBS),
	  .help = "Retransmissions of an unacknowledged packet; Soft-RoCE treats 7 as no limit.", .fallback = "7",
	  .type = OPTION_COUNT, MEMBER_OF(verbs, retry), .unset = JOB_RETRY_MAX, .max = JOB_RETRY_MAX,
	  .accepts = "a number from 0 to 7" },
	{ .name = "rnr-retry", .metavar = "N", .section = SECTION_VERBS, .commands = EVERY,
	  .backends = ON(VERBS), .help = "Retries when the receiver is not ready; 7: no limit.",
	  .fallback = "7", .type = OPTION_COUNT, MEMBER_OF(verbs, rnr_retry), .unset = JOB_RETRY_MAX,
	  .max = JOB_RETRY_MAX, .accepts = "a number from 0 to 7" },
	{ .name = "timeout-exponent", .metavar = "N", .section = SECTION_VERBS, .commands = EVERY,
	  .backends = ON(VERBS), .help = "Acknowledgement timeout of 4.096 us x 2^N; 0: none.",
	  .fallback = "14, which is 67 ms", .type = OPTION_COUNT, MEMBER_OF(verbs, timeout_exponent),
	  .unset = JOB_TIMEOUT_EXPONENT,
	  .max = JOB_TIMEOUT_EXPONENT_MAX, .accepts = "a number from 0 to 31" },
	{ .name = "devices", .metavar = "NAME,...", .section = SECTION_TRANSFER, .commands = FOR(TRANSFER),
	  .common = FOR(TRANSFER), .brief = "Own devices, such as mlx5_0,mlx5_1",
	  .help = "Own devices, 1 to 16. Each works with the server's device in the same place. Of verbs each may "
		  "have a port and a GID index: mlx5_0:1:3.",
	  .fallback = "--device", .type = OPTION_STRING, MEMBER(devices), .value = VALUE_DEVICE,
	  .accepts = "1 to 16 devices that 'perch devices' lists, between commas" },
	{ .name = "server-devices", .metavar = "NAME,...", .section = SECTION_TRANSFER, .commands = FOR(TRANSFER),
	  .help = "The server's devices; a shorter list goes around.", .fallback = "--server-device",
	  .type = OPTION_STRING, MEMBER(server_devices),
	  .accepts = "1 to 16 devices that 'perch devices' lists there, between commas" },
	{ .name = "cross-rail", .metavar = "N", .section = SECTION_TRANSFER, .commands = FOR(TRANSFER),
	  .help = "Device i works with the server's device i + N, modulo their number.", .fallback = "0",
	  .type = OPTION_COUNT, MEMBER(cross_rail), .max = JOB_DEVICES_MAX - 1,
	  .accepts = "a whole number below the number of devices" },
	{ .name = "threads", .metavar = "N", .section = SECTION_TRANSFER, .commands = LANES,
	  .common = LANES, .brief = "Threads (default: one for each device)",
	  .help = "Threads: a multiple or a divisor of the number of devices. Each has its own queue pairs and "
		  "buffers.", .fallback = "one for each device", .type = OPTION_COUNT, MEMBER(threads), .min = 1,
	  .max = JOB_THREADS_MAX, .accepts = "a whole number from 1 to 64" },
	{ .name = "consecutive", .section = SECTION_TRANSFER, .commands = FOR(TRANSFER),
	  .help = "Post each transfer by itself, not a batch as one list.", .type = OPTION_FLAG,
	  MEMBER(consecutive) },
	{ .name = "no-session", .section = SECTION_TRANSFER, .commands = FOR(TRANSFER),
	  .help = "Look up keys, queue pairs and requests again for each transfer.", .type = OPTION_FLAG,
	  MEMBER(no_session) },
	{ .name = "buffer", .metavar = "SIZE", .section = SECTION_TRANSFER, .commands = FOR(TRANSFER),
	  .help = "Size of a transfer buffer; each thread has one for each of its devices.",
	  .fallback = "as much as the largest batch needs", .type = OPTION_CUSTOM, .set_job = set_buffer,
	  MEMBER(buffer_bytes),
	  .accepts = "bytes, at least as much as the largest batch needs, such as 64M" },
	{ .name = "stride", .metavar = "SIZE", .section = SECTION_TRANSFER, .commands = FOR(TRANSFER),
	  .help = "Bytes from one transfer of a batch to the next.", .fallback = "contiguous", .type = OPTION_CUSTOM,
	  .set_job = set_stride, MEMBER(stride_bytes), .accepts = "bytes, at least --size, such as 64K" },
	{ .name = "chunk", .metavar = "SIZE", .section = SECTION_TRANSFER, .commands = FOR(TRANSFER),
	  .help = "Split larger transfers into chunks of SIZE.", .fallback = "not split", .type = OPTION_CUSTOM,
	  .set_job = set_chunk, MEMBER(chunk_bytes), .accepts = "bytes from 1 to 4294967295, such as 64K" },
	{ .name = "max-chunks", .metavar = "N", .section = SECTION_TRANSFER, .commands = FOR(TRANSFER),
	  .help = "Split no transfer into more than N chunks; the chunks then grow.", .fallback = "1024",
	  .type = OPTION_COUNT, MEMBER(max_chunks), .min = 1, .max = JOB_CHUNKS_MAX,
	  .accepts = "a whole number from 1 to 1024" },
	{ .name = "memory", .metavar = "KIND", .section = SECTION_MEMORY, .commands = EVERY,
	  .help = "Memory of the buffers of both ends: " MEMORY_KINDS " (NVIDIA, AMD, Intel). "
		  MEMORY_GPUS ", the nearest to the network device.",
	  .fallback = "host", .type = OPTION_CUSTOM, .set_job = set_memory, .of_job = true, .choices = memory_words,
	  .accepts = MEMORY_KINDS "; " MEMORY_GPUS },
	{ .name = "tx-memory", .metavar = "KIND", .section = SECTION_MEMORY, .commands = EVERY,
	  .help = "The same for send buffers only.", .fallback = "host", .type = OPTION_CUSTOM,
	  .set_job = set_tx_memory, MEMBER(tx_memory),
	  .choices = memory_words, .accepts = MEMORY_KINDS "; " MEMORY_GPUS },
	{ .name = "rx-memory", .metavar = "KIND", .section = SECTION_MEMORY, .commands = EVERY,
	  .help = "The same for receive buffers only.", .fallback = "host", .type = OPTION_CUSTOM,
	  .set_job = set_rx_memory, MEMBER(rx_memory),
	  .choices = memory_words, .accepts = MEMORY_KINDS "; " MEMORY_GPUS },
	{ .name = "huge", .metavar = "SIZE", .section = SECTION_MEMORY, .commands = EVERY,
	  .help = "The same as --memory huge:SIZE.", .type = OPTION_CUSTOM, .set_job = set_huge, .of_job = true,
	  .choices = huge_words },
	{ .name = "footprint", .metavar = "SIZE", .section = SECTION_MEMORY, .commands = EVERY,
	  .backends = ~ON(NULL),
	  .help = "Scatter the messages over a buffer of SIZE, in a pseudo-random order. lat and bw have one for each "
		  "direction, transfer and rate one for each thread.",
	  .fallback = "as much as the outstanding messages need", .type = OPTION_CUSTOM,
	  .set_job = set_footprint, MEMBER(footprint), .min = 1, .max = JOB_FOOTPRINT_MAX,
	  .accepts = "bytes, from a message for each queue pair to 1024G, such as 1G" },
	{ .name = "bounce", .section = SECTION_MEMORY, .commands = MEASURE,
	  .help = "Copy each message of a GPU through host memory; the copy is part of the measured time.",
	  .type = OPTION_FLAG, MEMBER(bounce) },
	{ .name = "svc-id", .metavar = "N", .section = SECTION_FABRIC, .commands = EVERY | FOR(SERVE),
	  .backends = ON(CXI), .help = "Own CXI service; each end names its own.",
	  .fallback = "the provider's choice", .type = OPTION_COUNT, MEMBER_OF(cxi, svc_id), .unset = -1,
	  .max = JOB_SVC_ID_MAX,
	  .accepts = "a service that 'cxi_service list' shows, from 0 to 2147483647" },
	{ .name = "server-svc-id", .metavar = "N", .section = SECTION_FABRIC, .commands = EVERY,
	  .backends = ON(CXI), .help = "The server's CXI service; overrides the server's own --svc-id.",
	  .fallback = "the server's choice", .type = OPTION_COUNT, MEMBER_OF(cxi, server_svc_id), .unset = -1,
	  .max = JOB_SVC_ID_MAX,
	  .accepts = "a service that 'cxi_service list' shows on the server, from 0 to 2147483647" },
	{ .name = "vni", .metavar = "N", .section = SECTION_FABRIC, .commands = EVERY, .backends = ON(CXI),
	  .help = "Virtual network ID of both ends.", .fallback = "the provider's choice", .type = OPTION_COUNT,
	  MEMBER_OF(cxi, vni), .unset = -1, .max = JOB_VNI_MAX,
	  .accepts = "a VNI that both services allow, from 0 to 65535" },
	{ .name = "no-idc", .section = SECTION_FABRIC, .commands = MEASURE, .backends = ON(CXI),
	  .help = "No immediate data commands: the NIC fetches every payload from memory.", .type = OPTION_FLAG,
	  MEMBER_OF(cxi, no_idc) },
	{ .name = "no-ll", .section = SECTION_FABRIC, .commands = MEASURE, .backends = ON(CXI),
	  .help = "No low-latency command queue.", .type = OPTION_FLAG, MEMBER_OF(cxi, no_ll) },
	{ .name = "rdzv", .section = SECTION_FABRIC, .commands = MEASURE, .backends = ON(CXI),
	  .help = "Rendezvous for sends from 192 bytes, the smallest that the provider can force.",
	  .type = OPTION_FLAG, MEMBER_OF(cxi, rdzv) },
	{ .name = "unrestricted", .section = SECTION_FABRIC, .commands = MEASURE, .backends = ON(CXI),
	  .help = "Ordered, unrestricted writes and reads.", .fallback = "restricted", .type = OPTION_FLAG,
	  MEMBER_OF(cxi, unrestricted) },
	{ .name = "no-hrp", .section = SECTION_FABRIC, .commands = MEASURE, .backends = ON(CXI),
	  .help = "No high-rate puts.",
	  .fallback = "high-rate puts up to 2048 bytes, if built with the CXI header of libfabric",
	  .type = OPTION_FLAG, MEMBER_OF(cxi, no_hrp) },
	{ .name = "keys", .metavar = "MODE", .section = SECTION_FABRIC, .commands = MEASURE,
	  .backends = ON(CXI),
	  .help = "Memory keys of the targets: client (below 100, no matching), matching (100 and above), or "
		  "provider.", .fallback = "client", .type = OPTION_CHOICE, MEMBER_OF(cxi, keys),
	  WORDS(key_mode_names) },
	{ .name = "verify", .section = SECTION_CHECKS, .commands = MEASURE | FOR(TRANSFER),
	  .help = "Fill every message with a numbered pattern and check it on arrival (exit 5 if it differs).",
	  .type = OPTION_FLAG, MEMBER(verify) },
	{ .name = "interval", .metavar = "TIME", .section = SECTION_OUTPUT, .commands = MEASURE,
	  .help = "Also print a line for each TIME while measuring.", .type = OPTION_DURATION, MEMBER(interval_ns),
	  .min = NSEC_PER_MSEC, .max = JOB_TIME_MAX, .unit = NSEC_PER_SEC,
	  .accepts = "a time of at least 1ms, such as 500ms or 1s (a bare number is seconds)" },
	{ .name = "report-all", .section = SECTION_OUTPUT, .commands = FOR(LAT),
	  .help = "Also print every latency; requires --iterations of at most 10000000.", .type = OPTION_FLAG,
	  MEMBER(report_all) },

	/* What no option names by itself. */
	{ MEMBER(kind), .names = kind_names },
	{ MEMBER(rate_unit), .names = rate_unit_names },
	{ MEMBER(timeout_ns) },
	{ MEMBER(warmup_ns) },
	{ MEMBER_OF(verbs, traffic_class), .backends = ON(VERBS), .unset = -1, .max = JOB_TRAFFIC_CLASS_MAX,
	  .label = "traffic-class by number" },
	{ MEMBER_OF(ofi, fabric_class), .names = fabric_class_names, .backends = LIBFABRIC,
	  .label = "traffic-class by name" },
};

const size_t job_members_size = ELEMENTSOF(job_members);

_Static_assert(ELEMENTSOF(job_members) <= JOB_MEMBERS_MAX, "raise JOB_MEMBERS_MAX");
