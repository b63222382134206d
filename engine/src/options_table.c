/* SPDX-License-Identifier: Apache-2.0 */
/* The table itself. A new option is one entry here (and a setter where no type fits), nothing more. */
#include <sched.h>

#include "options.h"
#include "parse.h"

#define FOR(command) (1u << COMMAND_##command)
#define MEASURE (FOR(LAT) | FOR(BW))
#define CONNECT (MEASURE | FOR(MEET))

#define FIELD(member) \
	.offset = offsetof(struct options, member), .size = sizeof(((struct options *) NULL)->member)

/* Both fit twice into the signed 64 bits of JSON's integers; no measurement comes near them. */
#define COUNT_MAX UINT64_C(1000000000000000)
#define TIME_MAX (UINT64_C(365) * 24 * 3600 * NSEC_PER_SEC)

static const char *const definitions[] = { "auto", "half_round_trip", "completion", NULL };
static const char *const completions[] = { "busy", "event", NULL };
static const char *const clocks[] = { "monotonic", "cycles", NULL };
static const char *const connections[] = { "rc", "uc", "ud", NULL };

_Static_assert(ELEMENTSOF(definitions) == DEFINITION_MAX + 1, "enum definition");
_Static_assert(ELEMENTSOF(completions) == COMPLETION_MODE_MAX + 1, "enum completion_mode");
_Static_assert(ELEMENTSOF(clocks) == CLOCK_KIND_MAX + 1, "enum clock_kind");
_Static_assert(ELEMENTSOF(connections) == CONNECTION_MAX + 1, "enum connection");

static int set_op(struct options *o, const char *value) {
	int op = op_from_name(value);

	if (op < 0)
		return -EINVAL;
	o->job.op = (enum op) op;
	return 0;
}

static int set_size(struct options *o, const char *value) {
	return parse_sizes(value, o->job.sizes, &o->job.n_sizes);
}

static int set_rate(struct options *o, const char *value) {
	return parse_rate(value, &o->job.rate_unit, &o->job.rate);
}

static int set_quantiles(struct options *o, const char *value) {
	return parse_quantiles(value, o->quantiles, OPTIONS_QUANTILES_MAX, &o->n_quantiles);
}

static int set_mtu(struct options *o, const char *value) {
	uint64_t n;
	int r;

	r = parse_u64(value, &n);
	if (r < 0)
		return r;
	if (n < JOB_MTU_MIN || n > JOB_MTU_MAX || (n & (n - 1)))
		return -ERANGE;
	o->job.mtu = (uint32_t) n;
	return 0;
}

static int set_huge(struct options *o, const char *value) {
	if (streq(value, "2M"))
		o->job.huge = JOB_HUGE_2M;
	else if (streq(value, "1G"))
		o->job.huge = JOB_HUGE_1G;
	else
		return -EINVAL;
	return 0;
}

const struct option_entry option_table[] = {
	{ .name = "backend", .metavar = "NAME", .section = SECTION_WHAT, .commands = MEASURE,
	  .help = "Data path to measure; the backends are listed below.", .fallback = "tcp",
	  .type = OPTION_STRING, FIELD(job.backend), .accepts = "the name of a backend: see 'perch --help'" },
	{ .name = "provider", .metavar = "NAME", .section = SECTION_WHAT, .commands = MEASURE,
	  .help = "Provider of the ofi backend, as in fi_info(1): tcp, shm, verbs, cxi, efa.",
	  .fallback = "the best usable one", .type = OPTION_STRING, FIELD(job.provider),
	  .accepts = "a provider that 'perch devices' lists" },
	{ .name = "device", .metavar = "NAME", .section = SECTION_WHAT, .commands = MEASURE | FOR(SERVE),
	  .help = "Own device to use; each side names its own.", .fallback = "the one that reaches the peer",
	  .type = OPTION_STRING, FIELD(job.device), .accepts = "a device that 'perch devices' lists" },
	{ .name = "server-device", .metavar = "NAME", .section = SECTION_WHAT, .commands = MEASURE,
	  .help = "Device that the server shall use, before what its own --device says.", .fallback = "the server's choice",
	  .type = OPTION_STRING, FIELD(job.server_device), .accepts = "a device that 'perch devices' lists on the server" },
	{ .name = "op", .metavar = "OP", .section = SECTION_WHAT, .commands = MEASURE,
	  .help = "Operation: send, send-imm, write, write-imm, read, fetch-add or compare-swap (atomic is fetch-add).",
	  .fallback = "send", .type = OPTION_CUSTOM, .set = set_op,
	  .accepts = "send, send-imm, write, write-imm, read, fetch-add, compare-swap or atomic" },
	{ .name = "size", .metavar = "MIN[:MAX[:STEP]]", .section = SECTION_WHAT, .commands = MEASURE,
	  .help = "Message bytes: one size, MIN doubled up to MAX, or MIN to MAX by STEP; K, M and G are "
		  "powers of 1024.",
	  .fallback = "8 for lat, 64K for bw", .type = OPTION_CUSTOM, .set = set_size,
	  .accepts = "MIN, MIN:MAX or MIN:MAX:STEP in bytes from 1 to 4294967295, at most 128 sizes, "
		     "for example 8:64K" },
	{ .name = "definition", .metavar = "WHAT", .section = SECTION_WHAT, .commands = FOR(LAT),
	  .help = "What a latency is: half_round_trip or completion, where the operation has both.",
	  .fallback = "half_round_trip where possible", .type = OPTION_CHOICE, FIELD(job.definition),
	  .choices = definitions, .accepts = "half_round_trip, completion or auto" },

	{ .name = "iterations", .metavar = "N", .section = SECTION_PACE, .commands = MEASURE,
	  .help = "Messages to measure for each size; excludes --duration.",
	  .fallback = "1000 for lat, 5000 for bw", .type = OPTION_COUNT, FIELD(job.iterations),
	  .min = 1, .max = COUNT_MAX, .accepts = "a whole number of messages from 1 to 1000000000000000" },
	{ .name = "duration", .metavar = "TIME", .section = SECTION_PACE, .commands = MEASURE,
	  .help = "Time to measure for each size, such as 5s or 2m; excludes --iterations.",
	  .type = OPTION_DURATION, FIELD(job.duration_ns), .min = 1, .max = TIME_MAX, .unit = NSEC_PER_SEC,
	  .accepts = "a time above 0 and below a year such as 500ms, 10s, 5m or 1h (a bare number is seconds)" },
	{ .name = "warmup", .metavar = "N", .section = SECTION_PACE, .commands = MEASURE,
	  .help = "Messages before the measurement, for each size.", .fallback = "100",
	  .type = OPTION_COUNT, FIELD(job.warmup), .max = COUNT_MAX,
	  .accepts = "a whole number of messages from 0 to 1000000000000000" },
	{ .name = "gap", .metavar = "TIME", .section = SECTION_PACE, .commands = FOR(LAT),
	  .help = "Pause between two messages; a bare number is microseconds.", .fallback = "0",
	  .type = OPTION_DURATION, FIELD(job.gap_ns), .max = 60 * NSEC_PER_SEC,
	  .unit = NSEC_PER_USEC,
	  .accepts = "a time of at most 1m such as 10us or 1ms (a bare number is microseconds)" },
	{ .name = "rate", .metavar = "RATE", .section = SECTION_PACE, .commands = MEASURE,
	  .help = "Pace, such as 1000msg/s or 5Gb/s; a message delayed by others counts from the time at "
		  "which it was due.",
	  .fallback = "as fast as possible", .type = OPTION_CUSTOM, .set = set_rate,
	  .accepts = "a number above 0 with its unit, such as 1000msg/s, 10Kmsg/s, 100Mb/s or 5Gb/s" },
	{ .name = "outstanding", .metavar = "N", .section = SECTION_PACE, .commands = MEASURE,
	  .help = "Messages under way at a time; lat knows only 1.", .fallback = "1 for lat, 64 for bw",
	  .type = OPTION_COUNT, FIELD(job.outstanding), .min = 1, .max = JOB_OUTSTANDING_MAX,
	  .accepts = "a whole number from 1 to 8192" },
	{ .name = "bidirectional", .section = SECTION_PACE, .commands = FOR(BW),
	  .help = "Measure both directions at once and add them up.",
	  .type = OPTION_FLAG, FIELD(job.bidirectional) },

	{ .name = "completion", .metavar = "MODE", .section = SECTION_TIMING, .commands = MEASURE,
	  .help = "How to wait: busy polls and takes a core, event sleeps.", .fallback = "busy",
	  .type = OPTION_CHOICE, FIELD(job.completion), .choices = completions, .accepts = "busy or event" },
	{ .name = "clock", .metavar = "KIND", .section = SECTION_TIMING, .commands = MEASURE,
	  .help = "Clock of the measurement: monotonic, or cycles where the time stamp counter is invariant.",
	  .fallback = "monotonic", .type = OPTION_CHOICE, FIELD(job.clock), .choices = clocks,
	  .accepts = "monotonic or cycles" },
	{ .name = "cpu", .metavar = "N", .section = SECTION_TIMING, .commands = MEASURE,
	  .help = "Processor to stay on.", .fallback = "where the scheduler likes",
	  .type = OPTION_COUNT, FIELD(cpu), .max = CPU_SETSIZE - 1,
	  .accepts = "the number of a processor, from 0 to 1023" },

	{ .name = "connection", .metavar = "KIND", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_CONNECTION,
	  .help = "Transport of the queue pairs: rc (all operations), uc (send, write) or ud (send, a message at most one packet).",
	  .fallback = "rc", .type = OPTION_CHOICE, FIELD(job.connection), .choices = connections, .accepts = "rc, uc or ud" },
	{ .name = "ib-port", .metavar = "N", .section = SECTION_VERBS, .commands = MEASURE | FOR(SERVE), .choice = JOB_OPTION_IB_PORT,
	  .help = "Own port of the device, from 1; each side names its own.", .fallback = "the first active one",
	  .type = OPTION_COUNT, FIELD(job.ib_port), .min = 1, .max = JOB_IB_PORT_MAX, .accepts = "a port of the device, from 1 to 255" },
	{ .name = "server-ib-port", .metavar = "N", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_IB_PORT,
	  .help = "Port that the server shall use.", .fallback = "the server's choice",
	  .type = OPTION_COUNT, FIELD(job.server_ib_port), .min = 1, .max = JOB_IB_PORT_MAX,
	  .accepts = "a port of the server's device, from 1 to 255" },
	{ .name = "gid-index", .metavar = "N", .section = SECTION_VERBS, .commands = MEASURE | FOR(SERVE), .choice = JOB_OPTION_GID_INDEX,
	  .help = "Own entry of the port's GID table; each side names its own.",
	  .fallback = "RoCEv2 of the interface that reaches the peer; none on InfiniBand",
	  .type = OPTION_COUNT, FIELD(job.gid_index), .max = JOB_GID_INDEX_MAX,
	  .accepts = "an index that 'perch devices' lists, from 0 to 255" },
	{ .name = "server-gid-index", .metavar = "N", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_GID_INDEX,
	  .help = "Entry of the GID table that the server shall use.", .fallback = "the server's choice",
	  .type = OPTION_COUNT, FIELD(job.server_gid_index), .max = JOB_GID_INDEX_MAX,
	  .accepts = "an index that 'perch devices' lists on the server, from 0 to 255" },
	{ .name = "mtu", .metavar = "BYTES", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_MTU,
	  .help = "Path MTU: payload bytes of one packet.", .fallback = "the smaller active MTU of both ends",
	  .type = OPTION_CUSTOM, .set = set_mtu, .accepts = "256, 512, 1024, 2048 or 4096" },
	{ .name = "sl", .metavar = "N", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_SL,
	  .help = "Service level: the InfiniBand lane, or the priority of RoCE.", .fallback = "0",
	  .type = OPTION_COUNT, FIELD(job.sl), .max = JOB_SL_MAX, .accepts = "a service level from 0 to 15" },
	{ .name = "traffic-class", .metavar = "N", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_TRAFFIC_CLASS,
	  .help = "Traffic class of the packets: DSCP x 4 + ECN.", .fallback = "0",
	  .type = OPTION_COUNT, FIELD(job.traffic_class), .max = JOB_TRAFFIC_CLASS_MAX, .accepts = "a number from 0 to 255" },
	{ .name = "tos", .metavar = "N", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_TRAFFIC_CLASS,
	  .help = "The same as --traffic-class.", .type = OPTION_COUNT, FIELD(job.traffic_class), .max = JOB_TRAFFIC_CLASS_MAX,
	  .accepts = "a number from 0 to 255" },
	{ .name = "queue-pairs", .metavar = "N", .section = SECTION_VERBS, .commands = FOR(BW), .choice = JOB_OPTION_QUEUE_PAIRS,
	  .help = "Queue pairs that share the messages under way.", .fallback = "1",
	  .type = OPTION_COUNT, FIELD(job.queue_pairs), .min = 1, .max = JOB_QUEUE_PAIRS_MAX, .accepts = "a whole number from 1 to 1024" },
	{ .name = "batch", .metavar = "N", .section = SECTION_VERBS, .commands = FOR(BW), .choice = JOB_OPTION_BATCH,
	  .help = "Work requests of one post list, which rings the doorbell once.", .fallback = "1",
	  .type = OPTION_COUNT, FIELD(job.batch), .min = 1, .max = JOB_OUTSTANDING_MAX,
	  .accepts = "a whole number from 1 to --outstanding, 8192 at most" },
	{ .name = "cq-moderation", .metavar = "N", .section = SECTION_VERBS, .commands = FOR(BW), .choice = JOB_OPTION_CQ_MODERATION,
	  .help = "Ask for a completion of every Nth message of a queue pair only.", .fallback = "1",
	  .type = OPTION_COUNT, FIELD(job.cq_moderation), .min = 1, .max = JOB_OUTSTANDING_MAX,
	  .accepts = "a whole number from 1 to --outstanding / --queue-pairs, 8192 at most" },
	{ .name = "inline", .metavar = "BYTES", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_INLINE,
	  .help = "Largest message that is copied into its work request; 0: none.", .fallback = "for lat as perftest, 188 to 236; for bw 0",
	  .type = OPTION_COUNT, FIELD(job.inline_bytes), .max = JOB_INLINE_MAX, .accepts = "bytes from 0 to 65536" },
	{ .name = "srq", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_SRQ,
	  .help = "Receive through one shared receive queue.", .type = OPTION_FLAG, FIELD(job.srq) },
	{ .name = "rdma-cm", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_RDMA_CM,
	  .help = "Connect through the RDMA connection manager.", .type = OPTION_FLAG, FIELD(job.rdma_cm) },
	{ .name = "relaxed-ordering", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_RELAXED_ORDERING,
	  .help = "Let PCIe reorder what the device writes to memory.", .type = OPTION_FLAG, FIELD(job.relaxed_ordering) },
	{ .name = "retry", .metavar = "N", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_RETRY,
	  .help = "How often an unacknowledged packet is sent again.", .fallback = "7",
	  .type = OPTION_COUNT, FIELD(job.retry), .max = JOB_RETRY_MAX, .accepts = "a number from 0 to 7" },
	{ .name = "rnr-retry", .metavar = "N", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_RNR_RETRY,
	  .help = "How often a receiver that is not ready is tried again; 7: for ever.", .fallback = "7",
	  .type = OPTION_COUNT, FIELD(job.rnr_retry), .max = JOB_RETRY_MAX, .accepts = "a number from 0 to 7" },
	{ .name = "timeout-exponent", .metavar = "N", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_TIMEOUT_EXPONENT,
	  .help = "Wait 4.096 us x 2^N for an acknowledgement; 0: for ever.", .fallback = "14, which is 67 ms",
	  .type = OPTION_COUNT, FIELD(job.timeout_exponent), .max = JOB_TIMEOUT_EXPONENT_MAX, .accepts = "a number from 0 to 31" },
	{ .name = "huge", .metavar = "SIZE", .section = SECTION_VERBS, .commands = MEASURE, .choice = JOB_OPTION_HUGE,
	  .help = "Take the buffers from huge pages of this size.", .fallback = "ordinary pages",
	  .type = OPTION_CUSTOM, .set = set_huge, .accepts = "2M or 1G" },

	{ .name = "verify", .section = SECTION_CHECKS, .commands = MEASURE,
	  .help = "Fill every message with a numbered pattern and check what arrives (exit 5 where it differs).",
	  .type = OPTION_FLAG, FIELD(job.verify) },
	{ .name = "max-p99", .metavar = "US", .section = SECTION_CHECKS, .commands = FOR(LAT),
	  .help = "Exit 1 if the p99 latency of a size is above US microseconds.",
	  .type = OPTION_DECIMAL, FIELD(max_p99_us), .accepts = "microseconds above 0, such as 12.5" },
	{ .name = "min-gbit", .metavar = "G", .section = SECTION_CHECKS, .commands = FOR(BW),
	  .help = "Exit 1 if the bandwidth of a size is below G Gb/s.",
	  .type = OPTION_DECIMAL, FIELD(min_gbit), .accepts = "Gb/s above 0, such as 92.5" },

	{ .name = "json", .section = SECTION_OUTPUT, .commands = MEASURE | FOR(DEVICES),
	  .help = "Print one JSON object a line instead of a table.", .type = OPTION_FLAG, FIELD(json) },
	{ .name = "interval", .metavar = "TIME", .section = SECTION_OUTPUT, .commands = MEASURE,
	  .help = "Also print a line for each TIME while measuring.", .type = OPTION_DURATION,
	  FIELD(job.interval_ns), .min = NSEC_PER_MSEC, .max = TIME_MAX, .unit = NSEC_PER_SEC,
	  .accepts = "a time of at least 1ms, such as 500ms or 1s (a bare number is seconds)" },
	{ .name = "report-all", .section = SECTION_OUTPUT, .commands = FOR(LAT),
	  .help = "Also print every single latency; needs --iterations, at most 10000000.",
	  .type = OPTION_FLAG, FIELD(job.report_all) },
	{ .name = "quantiles", .metavar = "P[,P...]", .section = SECTION_OUTPUT, .commands = FOR(HIST),
	  .help = "Quantiles to print, each above 0 and at most 1.",
	  .fallback = "0.5,0.9,0.95,0.99,0.999,0.9999", .type = OPTION_CUSTOM, .set = set_quantiles,
	  .accepts = "at most 64 numbers above 0 and at most 1 between commas, such as 0.5,0.99" },
	{ .name = "distribution", .section = SECTION_OUTPUT, .commands = FOR(HIST),
	  .help = "Also print the cumulative distribution, for a chart.",
	  .type = OPTION_FLAG, FIELD(distribution) },

	{ .name = "port", .metavar = "N", .section = SECTION_CONNECTION, .commands = CONNECT | FOR(SERVE),
	  .help = "TCP port of perch serve.", .fallback = "18600", .type = OPTION_COUNT, FIELD(port),
	  .min = 1, .max = UINT16_MAX, .accepts = "a port number from 1 to 65535" },
	{ .name = "bind", .metavar = "ADDRESS", .section = SECTION_CONNECTION, .commands = CONNECT | FOR(SERVE),
	  .help = "Own address: where serve listens, or where a client connects from.",
	  .fallback = "any with a token, else loopback", .type = OPTION_STRING, FIELD(bind),
	  .accepts = "an IPv4 or IPv6 address of this host" },
	{ .name = "token-file", .metavar = "FILE", .section = SECTION_CONNECTION, .commands = CONNECT | FOR(SERVE),
	  .help = "File with the secret that both sides share; PERCH_TOKEN_FILE says the same.",
	  .fallback = "none: loopback only", .type = OPTION_STRING, FIELD(token_file),
	  .accepts = "the path of a file" },
	{ .name = "timeout", .metavar = "TIME", .section = SECTION_CONNECTION, .commands = CONNECT | FOR(SERVE),
	  .help = "Longest time without progress.", .fallback = "30s", .type = OPTION_DURATION,
	  FIELD(timeout_ns), .min = NSEC_PER_MSEC, .unit = NSEC_PER_SEC, .max = UINT64_C(24) * 3600 * NSEC_PER_SEC,
	  .accepts = "a time from 1ms to 24h, such as 500ms, 30s or 5m (a bare number is seconds)" },
	{ .name = "ready-file", .metavar = "FILE", .section = SECTION_CONNECTION, .commands = FOR(SERVE),
	  .help = "File to write once the port is open.", .type = OPTION_STRING, FIELD(ready_file),
	  .accepts = "the path of a file" },
	{ .name = "connection-fd", .metavar = "FD", .section = SECTION_CONNECTION, .commands = FOR(SERVE),
	  .hidden = true, .help = "Open connection of the job's child.", .type = OPTION_COUNT,
	  FIELD(connection_fd), .max = INT_MAX, .accepts = "a file descriptor" },
	{ .name = "listener-fd", .metavar = "FD", .section = SECTION_CONNECTION, .commands = FOR(SERVE),
	  .hidden = true, .help = "Way back to the listener.", .type = OPTION_COUNT,
	  FIELD(listener_fd), .max = INT_MAX, .accepts = "a file descriptor" },

	{ .name = "flow", .metavar = "ID", .section = SECTION_MEETING, .commands = FOR(MEET),
	  .help = "Name of the meeting; required.", .type = OPTION_STRING, FIELD(flow),
	  .accepts = "a name of 1 to 255 bytes" },
	{ .name = "parties", .metavar = "N", .section = SECTION_MEETING, .commands = FOR(MEET),
	  .help = "How many must arrive before any may go on.", .fallback = "2", .type = OPTION_COUNT,
	  FIELD(parties), .min = 1, .max = OPTIONS_PARTIES_MAX, .accepts = "a whole number from 1 to 4096" },

	{ .name = "help", .letter = 'h', .section = SECTION_INFORMATION, .help = "Print help and exit.",
	  .type = OPTION_PRINT, .print = options_print_help },
	{ .name = "version", .letter = 'V', .section = SECTION_INFORMATION,
	  .help = "Print the version and exit.", .type = OPTION_PRINT, .print = options_print_version },
	{ .name = "manual", .section = SECTION_INFORMATION, .hidden = true,
	  .help = "Print the manual page's source and exit.", .type = OPTION_PRINT,
	  .print = options_print_manual },
};

const size_t option_table_size = ELEMENTSOF(option_table);

_Static_assert(ELEMENTSOF(option_table) <= OPTIONS_MAX, "raise OPTIONS_MAX");

const char *section_title(enum option_section section) {
	static const char *const titles[SECTION_MAX] = {
		[SECTION_WHAT] = "What to measure",
		[SECTION_PACE] = "How long and how fast",
		[SECTION_TIMING] = "Waiting and timing",
		[SECTION_VERBS] = "Queue pairs (backends that have them)",
		[SECTION_CHECKS] = "Checks",
		[SECTION_OUTPUT] = "Output",
		[SECTION_CONNECTION] = "Connection",
		[SECTION_MEETING] = "Meeting",
		[SECTION_INFORMATION] = "Information",
	};

	return titles[section];
}

bool option_belongs(const struct option_entry *e, enum command command) {
	if (e->section == SECTION_INFORMATION)
		return true;
	return command >= 0 && (e->commands & 1u << command);
}

const char *option_commands(const struct option_entry *e, char *ret, size_t size) {
	size_t n = 0;

	*ret = 0;
	for (int c = 0; c < COMMAND_MAX; c++)
		if (e->commands & 1u << c && n < size)
			n += (size_t) snprintf(ret + n, size - n, "%s%s", n ? ", " : "", command_name(c));
	return ret;
}
