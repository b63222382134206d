/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line. Every option has one entry, in job/members.c or options_table.c; parsing, --help, the manual page
 * and their tests are made from it.
 */
#pragma once

#include <limits.h>
#include <stdio.h>

#include "job/members.h"

enum {
	OPTIONS_PORT = 18600,           /* in no /etc/services, and below Linux's ephemeral range (32768) */
	OPTIONS_LAT_ITERATIONS = 1000,  /* 10 samples above p99: the fewest that support it */
	OPTIONS_BW_ITERATIONS = 5000,   /* as perftest(1)'s ib_write_bw */
	/* ms: clocks of cores and rates of congestion control need tens of them to settle */
	OPTIONS_WARMUP_MS = 200,
	OPTIONS_BW_OUTSTANDING = 64,    /* covers 64 x 64 KiB: twice the bandwidth-delay product of 100 Gb/s x 150 us */
	OPTIONS_TRANSFER_ITERATIONS = 100,      /* batches, of which one may have 32768 transfers */
	OPTIONS_TRANSFER_OUTSTANDING = 512,     /* of one queue pair, far above a round trip; shm queues 1024 */
	OPTIONS_RATE_DURATION_S = 2,            /* a start and an end of milliseconds, of which a thousandth is left */
	/* lists and completions above which a device's cost for each is below a tenth of that for its messages */
	OPTIONS_RATE_BATCH = 32,
	OPTIONS_RATE_MODERATION = 64,
	OPTIONS_QUANTILES_MAX = 64,
	OPTIONS_PARTIES_MAX = 4096,
	OPTIONS_HOST_MAX = 256,         /* RFC 1035: 255 octets, and the end */
	OPTIONS_FLOW_MAX = 256,
	OPTIONS_SOAK_INTERVAL_S = 60,   /* each minute, as the standards for long tests ask */
	OPTIONS_RECONNECT_S = 1800,     /* a reboot with checks of firmware and terabytes of memory: site policy */
	OPTIONS_STALL_MS = 20,          /* above a shared core's waiting time: six slices of 3 ms (base_slice_ns) */
	OPTIONS_OTHERS_MAX = 32,        /* entries in options_table.c */
	OPTIONS_MAX = JOB_MEMBERS_MAX + OPTIONS_OTHERS_MAX,
};

struct personality; /* personality.h */

enum log_level {
	LOG_WARNING,
	LOG_INFO,
	LOG_LEVEL_MAX,
};

enum shell {
	SHELL_BASH,
	SHELL_ZSH,
	SHELL_MAX,
};

struct options {
	enum command command;
	enum command checked;           /* COMMAND_CHECK: lat, bw, transfer or rate, whose words follow */
	/* for serve only its own device, cpu, numa, ib_port, gid_index and svc_id; of a personality the GPUs, too */
	struct job job;
	bool given[JOB_MEMBERS_MAX];    /* by place in job_members: on the command line, even with the default */
	char host[OPTIONS_HOST_MAX];
	uint16_t port;
	char bind[64];                  /* serve: where to listen; others: where to connect from; empty: any */
	char token_file[PATH_MAX];      /* empty: no token */
	char ready_file[PATH_MAX];
	uint64_t timeout_ns;            /* serve: the most that a client's job may ask for */
	uint64_t max_memory;            /* serve: bytes; 0: no limit */
	bool json;
	enum log_level log_level;       /* transfer and rate */
	bool boxed;                     /* transfer: MORI-IO's tables */
	double max_p99_us, min_gbit;    /* 0: no limit */
	bool any_frequency;             /* perftest's -F: asks for job.ignore_mismatch wherever that is allowed */
	char soak_file[PATH_MAX];       /* empty: no soak */
	uint64_t reconnect_ns, stall_ns;        /* 0: not given, until the defaults are set */
	char flow[OPTIONS_FLOW_MAX];
	unsigned parties;
	bool lines;                     /* meet */
	double quantiles[OPTIONS_QUANTILES_MAX];
	size_t n_quantiles;
	bool distribution;
	const char *const *files;       /* of argv; n_files of them */
	size_t n_files;
	enum shell shell;               /* completion */
	bool once;                      /* serve: end with the first measurement */
	const struct personality *personality;  /* writes as another program does; NULL: as perch */
	uint64_t buffer_limit;          /* of a personality: bytes for the buffers of one direction; 0: no limit */
};

/* 0: parsed. >0: help, version or manual was printed and there is nothing to do. Negative, said: EXIT_USAGE. */
int options_parse(int argc, char **argv, struct options *ret);

/* Whether they make a job: all that can be told of it without a host. -EINVAL (said, EXIT_USAGE). */
int options_validate(const struct options *o);

/* Whether it leads a job. */
static inline bool command_measures(enum command command) {
	return command == COMMAND_LAT || command == COMMAND_BW || command == COMMAND_TRANSFER ||
	       command == COMMAND_RATE;
}

extern const char *const shell_names[SHELL_MAX + 1];     /* ends with NULL */

/* completion.c: prints what makes a shell complete perch's command line. */
int command_completion(const struct options *o);

const char *command_name(int command);
int command_from_name(const char *name);        /* -EINVAL: no such command */

/* The rest is for options*.c and their tests. */

/* All options by number: the job's, then those of no job. NULL: there are no more. */
const struct option_entry *option_at(size_t i);

const char *section_title(enum option_section section);
bool option_belongs(const struct option_entry *e, enum command command);

/* "lat, bw": the subcommands that have an option. */
const char *option_commands(const struct option_entry *e, char *ret, size_t size);

/* Puts one value where the table says. Positive: as set_job(). Negative, not said. */
int option_store(const struct option_entry *e, const char *value, struct options *o);

/* options_refuse.c: report a mistake with the nearest valid word. `o` is unusable afterwards. */
int refuse_value(const struct option_entry *e, const char *value, int error, struct options *o);
int refuse_missing_value(const struct option_entry *e);
int refuse_unknown(const char *word, enum command command);
int refuse_command(const char *word);           /* NULL: there is none */
int refuse_shell(const char *word);             /* the same */

/* COMMAND_INVALID: the program's own help. The short one fits a terminal of 80 columns and 24 lines. */
void options_print_help(FILE *f, enum command command);
void options_print_help_all(FILE *f, enum command command);
void options_print_version(FILE *f, enum command command);
void options_print_manual(FILE *f, enum command command);
void options_print_markdown(FILE *f, enum command command);

/* Prints words up to 80 columns, continuing at `indent`, where the cursor stands; ends the line. */
void options_print_wrapped(FILE *f, const char *text, int indent);

struct command_description {
	const char *arguments;          /* after the name in a usage line */
	const char *summary;            /* a phrase */
	const char *text;               /* a few sentences for its help and the manual */
	const char *examples[3];
};

extern const struct command_description command_descriptions[COMMAND_MAX];
