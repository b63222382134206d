/* SPDX-License-Identifier: Apache-2.0 */
/* The options that are of no job: of the connection, the output, a soak, a meeting. A job's are in job/members.c. */
#include "options.h"
#include "job/parse.h"
#include "personality.h"

#define FOR(command) (1u << COMMAND_##command)
#define MEASURE (FOR(LAT) | FOR(BW))
#define EVERY (MEASURE | FOR(TRANSFER) | FOR(RATE))
#define CONNECT (EVERY | FOR(MEET))

#define FIELD(member) \
	.offset = offsetof(struct options, member), .size = sizeof(((struct options *) NULL)->member)

static const char *const log_levels[] = { "warning", "info", NULL };

_Static_assert(ELEMENTSOF(log_levels) == LOG_LEVEL_MAX + 1, "enum log_level");

static int set_quantiles(struct options *o, const char *value) {
	return parse_quantiles(value, o->quantiles, OPTIONS_QUANTILES_MAX, &o->n_quantiles);
}

static int set_max_memory(struct options *o, const char *value) {
	int r = parse_size(value, &o->max_memory);

	return r == 0 && o->max_memory == 0 ? -ERANGE : r;
}

static int set_personality(struct options *o, const char *value) {
	o->personality = personality_find(value);
	return o->personality ? 0 : -EINVAL;
}

static const struct option_entry others[] = {
	{ .name = "CPU-freq", .before = "cpu", .letter = 'F', .section = SECTION_TIMING, .commands = EVERY,
	  .help = "As perftest's -F: with --clock cycles the same as --ignore-frequency-mismatch; else no effect.",
	  .type = OPTION_FLAG, FIELD(any_frequency) },
	{ .name = "log-level", .before = "memory", .metavar = "LEVEL", .section = SECTION_OUTPUT,
	  .commands = FOR(TRANSFER) | FOR(RATE),
	  .help = "Messages on standard error: warning, or info, which adds pairs, threads and lists.",
	  .fallback = "warning", .type = OPTION_CHOICE, FIELD(log_level), .choices = log_levels },
	{ .name = "max-p99", .before = "interval", .metavar = "US", .section = SECTION_CHECKS,
	  .commands = FOR(LAT) | FOR(TRANSFER),
	  .help = "Exit 1 if the p99 latency of a size (transfer: of a batch) is above US microseconds.",
	  .type = OPTION_DECIMAL, FIELD(max_p99_us), .accepts = "microseconds above 0, such as 12.5" },
	{ .name = "min-gbit", .before = "interval", .metavar = "G", .section = SECTION_CHECKS,
	  .commands = FOR(BW) | FOR(TRANSFER),
	  .help = "Exit 1 if the bandwidth of a size is below G Gb/s.", .type = OPTION_DECIMAL, FIELD(min_gbit),
	  .accepts = "Gb/s above 0, such as 92.5" },
	{ .name = "json", .before = "interval", .section = SECTION_OUTPUT, .commands = EVERY | FOR(DEVICES),
	  .common = EVERY,
	  .brief = "One JSON object a line instead of a table",
	  .help = "Print one JSON object a line instead of a table.", .type = OPTION_FLAG, FIELD(json) },
	{ .name = "quantiles", .metavar = "P[,P...]", .section = SECTION_OUTPUT, .commands = FOR(HIST),
	  .help = "Quantiles to print, each above 0 and at most 1.", .fallback = "0.5,0.9,0.95,0.99,0.999,0.9999",
	  .type = OPTION_CUSTOM, .set = set_quantiles,
	  .accepts = "at most 64 numbers above 0 and at most 1 between commas, such as 0.5,0.99" },
	{ .name = "distribution", .section = SECTION_OUTPUT, .commands = FOR(HIST),
	  .help = "Also print the cumulative distribution, for a chart.", .type = OPTION_FLAG, FIELD(distribution) },
	{ .name = "soak", .metavar = "FILE", .section = SECTION_SOAK, .commands = MEASURE,
	  .help = "Measure for the whole --duration, reconnect when the connection is lost, and append each "
		  "--interval to FILE. Continues an unfinished FILE. One size; requires --json.",
	  .type = OPTION_STRING, FIELD(soak_file), .value = VALUE_FILE, .accepts = "the path of a file" },
	{ .name = "reconnect", .metavar = "TIME", .section = SECTION_SOAK, .commands = MEASURE,
	  .help = "Longest time to try to reconnect before the soak ends.", .fallback = "30m",
	  .type = OPTION_DURATION, FIELD(reconnect_ns), .min = 1, .max = JOB_TIME_MAX, .unit = NSEC_PER_SEC,
	  .accepts = "a time above 0, such as 30s or 10m (a bare number is seconds)" },
	{ .name = "stall", .metavar = "TIME", .section = SECTION_SOAK, .commands = MEASURE,
	  .help = "Report a stall after TIME without a completion while messages are outstanding.",
	  .fallback = "20ms", .type = OPTION_DURATION, FIELD(stall_ns), .min = NSEC_PER_MSEC, .max = JOB_TIME_MAX,
	  .unit = NSEC_PER_MSEC,
	  .accepts = "a time of at least 1ms, such as 20ms or 1s (a bare number is milliseconds)" },
	{ .name = "port", .letter = 'p', .metavar = "N", .section = SECTION_CONNECTION,
	  .commands = CONNECT | FOR(SERVE), .common = FOR(LAT), .brief = "TCP port of perch serve (default: 18600)",
	  .help = "TCP port of perch serve.", .fallback = "18600", .type = OPTION_COUNT, FIELD(port), .min = 1,
	  .max = UINT16_MAX, .accepts = "a port number from 1 to 65535" },
	{ .name = "bind", .metavar = "ADDRESS", .section = SECTION_CONNECTION, .commands = CONNECT | FOR(SERVE),
	  .help = "Own address: serve listens there, a client connects from there.",
	  .fallback = "any with a token, else loopback", .type = OPTION_STRING, FIELD(bind),
	  .accepts = "an IPv4 or IPv6 address of this host" },
	{ .name = "token-file", .metavar = "FILE", .section = SECTION_CONNECTION, .commands = CONNECT | FOR(SERVE),
	  .common = EVERY, .brief = "File with the secret that both ends share",
	  .help = "File with the secret that both ends share; the same as PERCH_TOKEN_FILE.",
	  .fallback = "none: loopback only", .type = OPTION_STRING, FIELD(token_file), .value = VALUE_FILE,
	  .accepts = "the path of a file" },
	{ .name = "timeout", .metavar = "TIME", .section = SECTION_CONNECTION, .commands = CONNECT | FOR(SERVE),
	  .help = "Longest time without progress; serve holds jobs to its own, and lets meetings keep theirs.",
	  .fallback = "30s", .type = OPTION_DURATION, FIELD(timeout_ns),
	  .min = NSEC_PER_MSEC, .unit = NSEC_PER_SEC, .max = UINT64_C(24) * 3600 * NSEC_PER_SEC,
	  .accepts = "a time from 1ms to 24h, such as 500ms, 30s or 5m (a bare number is seconds)" },
	{ .name = "ready-file", .metavar = "FILE", .section = SECTION_CONNECTION, .commands = FOR(SERVE),
	  .help = "File to write once the port is open.", .type = OPTION_STRING, FIELD(ready_file),
	  .value = VALUE_FILE, .accepts = "the path of a file" },
	{ .name = "max-memory", .metavar = "SIZE", .section = SECTION_CONNECTION, .commands = FOR(SERVE),
	  .help = "Refuse jobs whose buffers take more than SIZE.", .fallback = "the available memory",
	  .type = OPTION_CUSTOM, .set = set_max_memory, .accepts = "bytes above 0, such as 512M or 4G" },
	{ .name = "once", .section = SECTION_CONNECTION, .commands = FOR(SERVE),
	  .help = "Serve one measurement, then exit with its exit code.", .type = OPTION_FLAG, FIELD(once) },
	{ .name = "personality", .metavar = "NAME", .section = SECTION_OUTPUT, .commands = MEASURE | FOR(SERVE),
	  .hidden = true, .help = "Write as the program of that name does.", .type = OPTION_CUSTOM,
	  .set = set_personality, .accepts = "the name of a personality" },

	{ .name = "flow", .metavar = "ID", .section = SECTION_MEETING, .commands = FOR(MEET),
	  .help = "Name of the meeting; required without --lines.", .type = OPTION_STRING, FIELD(flow),
	  .accepts = "a name of 1 to 255 bytes" },
	{ .name = "parties", .metavar = "N", .section = SECTION_MEETING, .commands = FOR(MEET),
	  .help = "Parties that must arrive before any may go on.", .fallback = "2", .type = OPTION_COUNT,
	  FIELD(parties), .min = 1, .max = OPTIONS_PARTIES_MAX, .accepts = "a whole number from 1 to 4096" },
	{ .name = "lines", .section = SECTION_MEETING, .commands = FOR(MEET),
	  .help = "Many meetings: requests and answers are JSON lines on standard input and output.",
	  .type = OPTION_FLAG, FIELD(lines) },
	{ .name = "help", .letter = 'h', .section = SECTION_INFORMATION, .help = "Print help and exit.",
	  .type = OPTION_PRINT, .print = options_print_help },
	{ .name = "help-all", .section = SECTION_INFORMATION, .help = "Print help with every option and exit.",
	  .type = OPTION_PRINT, .print = options_print_help_all },
	{ .name = "version", .letter = 'V', .section = SECTION_INFORMATION, .help = "Print the version and exit.",
	  .type = OPTION_PRINT, .print = options_print_version },
	{ .name = "manual", .section = SECTION_INFORMATION, .hidden = true,
	  .help = "Print the manual page's source and exit.", .type = OPTION_PRINT, .print = options_print_manual },
	{ .name = "markdown", .section = SECTION_INFORMATION, .hidden = true,
	  .help = "Print the list of options in docs/options.md and exit.", .type = OPTION_PRINT,
	  .print = options_print_markdown },
};

_Static_assert(ELEMENTSOF(others) <= OPTIONS_OTHERS_MAX, "raise OPTIONS_OTHERS_MAX");

/* The job's in their order, each other one before the one of the job that it names, and the rest behind. */
static size_t merge(const struct option_entry *ret[OPTIONS_MAX]) {
	size_t n = 0;

	for (size_t i = 0; i < job_members_size && job_members[i].name; i++) {
		for (size_t k = 0; k < ELEMENTSOF(others); k++)
			if (others[k].before && streq(others[k].before, job_members[i].name))
				ret[n++] = &others[k];
		ret[n++] = &job_members[i];
	}
	for (size_t k = 0; k < ELEMENTSOF(others); k++)
		if (!others[k].before)
			ret[n++] = &others[k];
	return n;
}

const struct option_entry *option_at(size_t i) {
	static const struct option_entry *all[OPTIONS_MAX];
	static size_t n;

	if (n == 0)
		n = merge(all);
	return i < n ? all[i] : NULL;
}

const char *section_title(enum option_section section) {
	static const char *const titles[SECTION_MAX] = {
		[SECTION_WHAT] = "Measurement",
		[SECTION_PACE] = "Duration and pace",
		[SECTION_TIMING] = "Waiting and timing",
		[SECTION_VERBS] = "Queue pairs (backends that have them)",
		[SECTION_FABRIC] = "Slingshot (cxi)",
		[SECTION_TRANSFER] = "Threads and transfers",
		[SECTION_MEMORY] = "Memory",
		[SECTION_CHECKS] = "Checks",
		[SECTION_OUTPUT] = "Output",
		[SECTION_SOAK] = "Soak",
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
