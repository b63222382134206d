/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of what a job consists of, and of how it is asked for (members.c): parsing, --help, the manual,
 * completion, JSON, defaults and ranges are made from it. Options of no job have the same form (cli/options_table.c).
 */
#pragma once

#include <stdio.h>

#include "job.h"

enum command {
	COMMAND_SERVE,
	COMMAND_LAT,
	COMMAND_BW,
	COMMAND_TRANSFER,
	COMMAND_RATE,
	COMMAND_CHECK,
	COMMAND_HIST,
	COMMAND_MEET,
	COMMAND_DEVICES,
	COMMAND_COMPLETION,
	COMMAND_MAX,
	COMMAND_INVALID = -EINVAL,
};

struct options; /* cli/options.h */

enum option_section {
	SECTION_WHAT,
	SECTION_PACE,
	SECTION_TIMING,
	SECTION_VERBS,
	SECTION_FABRIC,
	SECTION_TRANSFER,
	SECTION_MEMORY,
	SECTION_CHECKS,
	SECTION_OUTPUT,
	SECTION_SOAK,
	SECTION_CONNECTION,
	SECTION_MEETING,
	SECTION_INFORMATION,
	SECTION_MAX,
};

enum option_type {
	OPTION_FLAG,            /* bool, takes no value */
	OPTION_STRING,          /* char[size]; empty is refused */
	OPTION_COUNT,           /* unsigned integer of `size` bytes within min..max */
	OPTION_DURATION,        /* uint64_t nanoseconds, at least min; a bare number counts in `unit` */
	OPTION_DECIMAL,         /* double above 0 */
	OPTION_CHOICE,          /* enum: the value's place in choices */
	OPTION_CUSTOM,          /* set() */
	OPTION_PRINT,           /* print(): information instead of work */
};

/* What a shell completes a value with where there are no choices. */
enum option_value {
	VALUE_ANY,
	VALUE_FILE,
	VALUE_DEVICE,           /* of this host */
};

/* How a member lies in struct job. */
enum member_form {
	FORM_TEXT,
	FORM_BOOL,
	FORM_U32,               /* and enums, where there are names */
	FORM_I32,
	FORM_U64,
	FORM_I64,
	FORM_REAL,
};

struct option_entry {
	const char *name;               /* of the option; NULL: no option, only a member */
	const char *before;             /* of no job: stands before this option of a job; NULL: behind all of them */
	const char *metavar;            /* NULL: takes no value */
	const char *help;               /* one sentence */
	const char *brief;              /* a phrase for the short help; one line with what stands before it */
	unsigned common;                /* 1u << COMMAND_*: those whose short help has it; others have no short help */
	const char *fallback;           /* the default, for people; NULL: none worth saying */
	const char *accepts;            /* ends "give ..." in the message about a bad value; NULL: the choices */
	unsigned commands;              /* 1u << COMMAND_*; 0: belongs to perch itself */
	enum option_section section;
	unsigned backends;              /* 1u << BACKEND_*: those that take it; 0: every one does */
	unsigned any_backend;           /* 1u << KIND_*: jobs for which every backend takes it */
	bool hidden;                    /* between the program's own processes */
	char letter;                    /* perftest's, where it has one; 0: none */

	enum option_type type;
	bool of_job;                    /* the field is one of struct job; else of struct options */
	size_t offset, size;            /* of the field */
	uint64_t min, max, unit;
	enum option_value value;
	const char *const *choices;     /* words that it takes, among others for OPTION_CUSTOM; ends with NULL */
	int (*set)(struct options *o, const char *value);
	int (*set_job)(struct job *job, const char *value);
	void (*print)(FILE *f, enum command command);

	/* Of a job's member; an alias, and what is none, has no key. */
	const char *key;                /* in JSON */
	enum member_form form;
	const char *const *names;       /* of an enum; ends with NULL */
	int64_t unset;                  /* its value where nobody gives one, which a backend without the choice has */
	const char *label;              /* for messages; NULL: .name */
};

/* One year. It and 10^15 messages fit into the signed 64 bits of JSON's integers; no measurement comes near them. */
#define JOB_TIME_MAX (UINT64_C(365) * 24 * 3600 * NSEC_PER_SEC)

enum { JOB_MEMBERS_MAX = 96 };

/* In the order of the help; those without a name come last. */
extern const struct option_entry job_members[];
extern const size_t job_members_size;

/* Whether a backend takes it in such a job. */
bool member_fits(const struct option_entry *e, const struct job *job, const struct backend_facts *b);

/* What messages call it. */
const char *member_label(const struct option_entry *e);

/* The field of a member; the value of one that is a number. */
static inline const void *member_of(const struct option_entry *e, const struct job *job) {
	return (const char *) job + e->offset;
}
int64_t member_number(const struct option_entry *e, const struct job *job);
void member_set_number(const struct option_entry *e, struct job *job, int64_t value);
