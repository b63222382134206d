/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <getopt.h>

#include "job/backend_facts.h"
#include "base/message.h"
#include "job/parse.h"
#include "mori.h"
#include "personality.h"

enum {
	GETOPT_FIRST = 256,                     /* what getopt_long() answers for the first option: above any letter */
	LETTERS_MAX = 2 * OPTIONS_MAX + 2,      /* ':' before all, each letter and its ':', and the end */
};

static const char *const command_names[COMMAND_MAX] = {
	[COMMAND_SERVE] = "serve", [COMMAND_LAT] = "lat",   [COMMAND_BW] = "bw",     [COMMAND_TRANSFER] = "transfer",
	[COMMAND_RATE] = "rate",   [COMMAND_CHECK] = "check", [COMMAND_HIST] = "hist", [COMMAND_MEET] = "meet",
	[COMMAND_DEVICES] = "devices",
	[COMMAND_COMPLETION] = "completion",
};

const char *const shell_names[SHELL_MAX + 1] = { [SHELL_BASH] = "bash", [SHELL_ZSH] = "zsh" };

const char *command_name(int command) {
	return command >= 0 && command < COMMAND_MAX ? command_names[command] : NULL;
}

int command_from_name(const char *name) {
	for (int c = 0; c < COMMAND_MAX; c++)
		if (streq(name, command_names[c]))
			return c;
	return COMMAND_INVALID;
}

static int store_count(const struct option_entry *e, void *field, uint64_t value) {
	uint32_t u32 = (uint32_t) value;
	uint16_t u16 = (uint16_t) value;

	if (value < e->min || value > e->max)
		return -ERANGE;
	if (e->size == sizeof(value))
		memcpy(field, &value, sizeof(value));
	else if (e->size == sizeof(u32))
		memcpy(field, &u32, sizeof(u32));
	else
		memcpy(field, &u16, sizeof(u16));
	return 0;
}

static int store_choice(const struct option_entry *e, void *field, const char *value) {
	for (unsigned i = 0; e->choices[i]; i++)
		if (streq(value, e->choices[i])) {
			memcpy(field, &i, sizeof(i)); /* enums here are unsigned int: no negative member */
			return 0;
		}
	return -EINVAL;
}

static int store_duration(const struct option_entry *e, void *field, const char *value) {
	uint64_t ns;
	int r;

	r = parse_duration(value, e->unit, &ns);
	if (r < 0)
		return r;
	if (ns < e->min || (e->max && ns > e->max))
		return -ERANGE;
	memcpy(field, &ns, sizeof(ns));
	return 0;
}

int option_store(const struct option_entry *e, const char *value, struct options *o) {
	void *field = e->of_job ? (char *) &o->job + e->offset : (char *) o + e->offset;
	uint64_t n;
	int r;

	if (value && !*value)
		return -EINVAL;
	switch (e->type) {
	case OPTION_FLAG:
		*(bool *) field = true;
		return 0;
	case OPTION_STRING:
		return copy_string(field, e->size, value);
	case OPTION_COUNT:
		r = parse_u64(value, &n);
		return r < 0 ? r : store_count(e, field, n);
	case OPTION_DURATION:
		return store_duration(e, field, value);
	case OPTION_DECIMAL:
		return parse_decimal(value, field);
	case OPTION_CHOICE:
		return store_choice(e, field, value);
	case OPTION_CUSTOM:
		return e->of_job ? e->set_job(&o->job, value) : e->set(o, value);
	case OPTION_PRINT:
		break;
	}
	return -EINVAL;
}

/* Names the option as it was typed: a letter also with its long name, which the help lists. */
static int refuse_foreign(const struct option_entry *e, bool letter, enum command command) {
	char commands[128];

	(void) option_commands(e, commands, sizeof(commands));
	if (letter)
		return failure(-EINVAL, EXIT_USAGE, "perch %s has no option -%c (--%s); it belongs to: %s",
			       command_name(command), e->letter, e->name, commands);
	return failure(-EINVAL, EXIT_USAGE, "perch %s has no option --%s; it belongs to: %s", command_name(command),
		       e->name, commands);
}

/* One option that getopt_long() has found: *ret_printed says that it was a question and is answered. */
static int apply(const struct option_entry *e, const char *value, struct options *o, bool *ret_printed) {
	int r;

	if (e->type == OPTION_PRINT) {
		e->print(stdout, o->command);
		*ret_printed = true;
		return 0;
	}
	r = option_store(e, value, o);
	if (r < 0)
		return refuse_value(e, value, r, o);
	if (e->of_job)
		o->given[e - job_members] = true;
	return 0;
}

/* What getopt_long() wants, from the table. */
static void build_getopt(struct option ret[OPTIONS_MAX + 1], char ret_letters[LETTERS_MAX]) {
	size_t letters = 0, n;

	ret_letters[letters++] = ':'; /* tell a missing value from an unknown option */
	for (n = 0; option_at(n); n++) {
		const struct option_entry *e = option_at(n);

		ret[n] = (struct option){
			.name = e->name,
			.has_arg = e->metavar ? required_argument : no_argument,
			.val = GETOPT_FIRST + (int) n,
		};
		if (e->letter)
			ret_letters[letters++] = e->letter;
		if (e->letter && e->metavar)
			ret_letters[letters++] = ':';
	}
	ret_letters[letters] = 0;
	ret[n] = (struct option){ 0 };
}

static const struct option_entry *entry_of(int value) {
	if (value >= GETOPT_FIRST)
		return option_at((size_t) (value - GETOPT_FIRST));
	for (size_t i = 0; option_at(i); i++)
		if (option_at(i)->letter == value)
			return option_at(i);
	return NULL;
}

static int refuse(const char *word, int answer, const struct option_entry *e, enum command command) {
	if (answer == ':' && e)
		return refuse_missing_value(e);
	if (e && !e->metavar)
		return failure(-EINVAL, EXIT_USAGE, "--%s takes no value, and '%s' gives one", e->name, word);
	return refuse_unknown(word, command);
}

/* getopt_long() also takes shortened names; a name that is a contract must not depend on which others exist. */
static bool spelled_out(const char *word, const struct option_entry *e) {
	size_t n = strlen(e->name);

	if (strncmp(word, "--", 2) != 0)
		return true;
	return strncmp(word + 2, e->name, n) == 0 && (word[2 + n] == 0 || word[2 + n] == '=');
}

static int parse_options(int argc, char **argv, struct options *o, bool *ret_printed) {
	struct option longs[OPTIONS_MAX + 1];
	char letters[LETTERS_MAX];
	int answer, r;

	build_getopt(longs, letters);
	opterr = 0;
	optind = 0; /* glibc: forget an earlier command line (the tests parse many) */
	while ((answer = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		bool unknown = answer == '?' || answer == ':';
		const struct option_entry *e = unknown ? entry_of(optopt ? optopt : -1) : entry_of(answer);
		const char letter[] = { '-', (char) optopt, 0 };
		const char *word = argv[optind - 1];

		if (unknown && optopt > 0 && optopt < GETOPT_FIRST)
			word = letter; /* of a cluster like -xyz: optind has not moved on */
		else if (!unknown && optarg == word)
			word = argv[optind - 2]; /* the value stood in a word of its own */
		if (unknown || !e || !spelled_out(word, e))
			return refuse(word, answer, e, o->command);
		if (!option_belongs(e, o->command))
			return refuse_foreign(e, answer < GETOPT_FIRST, o->command);
		r = apply(e, optarg, o, ret_printed);
		if (r < 0 || *ret_printed)
			return r;
	}
	return 0;
}

static int parse_shell(int argc, char **argv, struct options *o) {
	const char *word = optind < argc ? argv[optind] : NULL;
	int shell;

	if (argc - optind > 1)
		return failure(-EINVAL, EXIT_USAGE, "perch completion takes one shell, and '%s' is a second operand",
			       argv[optind + 1]);
	for (shell = 0; word && shell < SHELL_MAX; shell++)
		if (streq(word, shell_names[shell])) {
			o->shell = (enum shell) shell;
			return 0;
		}
	return refuse_shell(word);
}

/* HOST or FILE...; optind stands at the first. */
static int parse_operands(int argc, char **argv, struct options *o) {
	int n = argc - optind;
	const char *name = command_name(o->command);

	if (o->command == COMMAND_HIST) {
		o->files = (const char *const *) argv + optind;
		o->n_files = (size_t) n;
		return 0;
	}
	if (o->command == COMMAND_COMPLETION)
		return parse_shell(argc, argv, o);
	if (o->command == COMMAND_CHECK)
		return failure(-EINVAL, EXIT_USAGE,
			       "perch check needs lat, bw, transfer or rate and its arguments: perch check lat HOST");
	if (o->command == COMMAND_SERVE || o->command == COMMAND_DEVICES || o->lines)
		return n == 0 ? 0 : failure(-EINVAL, EXIT_USAGE,
					    "perch %s takes no operand such as '%s'; see 'perch %s --help'", name,
					    argv[optind], name);
	if (n < 1)
		return failure(-EINVAL, EXIT_USAGE, "perch %s needs the host where 'perch serve' runs: "
			       "perch %s HOST", name, name);
	if (n > 1)
		return failure(-EINVAL, EXIT_USAGE, "perch %s takes one host, and '%s' is a second operand",
			       name, argv[optind + 1]);
	if (!*argv[optind] || copy_string(o->host, sizeof(o->host), argv[optind]) < 0)
		return failure(-EINVAL, EXIT_USAGE, "the host '%.64s' is empty or too long; give a name or an "
			       "IPv4 or IPv6 address", argv[optind]);
	return 0;
}

static void set_defaults(enum command command, struct options *o) {
	*o = (struct options){
		.command = command,
		.port = OPTIONS_PORT,
		.timeout_ns = 30 * NSEC_PER_SEC,
		.parties = 2,
	};
	job_defaults(&o->job);
	o->job.kind = command == COMMAND_TRANSFER ? KIND_TRANSFER
		      : command == COMMAND_RATE	  ? KIND_RATE
		      : command == COMMAND_BW	  ? KIND_BANDWIDTH
						  : KIND_LATENCY;
	o->job.op = job_has_lanes(&o->job) ? OP_WRITE : OP_SEND;
	o->job.warmup_ns = OPTIONS_WARMUP_MS * NSEC_PER_MSEC;
	if (command_measures(command))
		(void) copy_string(o->job.backend, sizeof(o->job.backend), "tcp");
	(void) parse_quantiles("0.5,0.9,0.95,0.99,0.999,0.9999", o->quantiles, OPTIONS_QUANTILES_MAX,
			       &o->n_quantiles);
}

/* Refused even with the default as value: its user believes that the backend has it. */
static int check_choices(const struct options *o) {
	const struct backend_facts *b = command_measures(o->command) ? backend_facts_of(o->job.backend) : NULL;
	char others[BACKENDS_WITH_MAX];

	for (size_t i = 0; b && i < job_members_size; i++) { /* job_validate() refuses an unknown backend */
		const struct option_entry *e = &job_members[i];

		if (o->given[i] && !member_fits(e, &o->job, b))
			return failure(-EINVAL, EXIT_USAGE, "--%s: the %s backend does not have it%s", e->name, b->name,
				       backends_with(e->backends, 0, 0, others));
	}
	return 0;
}

static int check_soak(const struct options *o) {
	const struct job *job = &o->job;

	if (!o->soak_file[0])
		return o->reconnect_ns || o->stall_ns ? failure(-EINVAL, EXIT_USAGE, "--%s requires --soak FILE",
							 o->reconnect_ns ? "reconnect" : "stall") : 0;
	if (!o->json || !job->duration_ns)
		return failure(-EINVAL, EXIT_USAGE, "--soak requires --json and --duration");
	if (job->interval_ns > job->duration_ns)
		return failure(-EINVAL, EXIT_USAGE,
			       "--soak needs an --interval no longer than --duration; give a shorter one");
	if (job->n_sizes > 1)
		return failure(-EINVAL, EXIT_USAGE,
			       "--soak measures one size, and --size has %zu; give one", job->n_sizes);
	if (o->max_p99_us > 0 || o->min_gbit > 0)
		return failure(-EINVAL, EXIT_USAGE, "--%s does not work with --soak; check the soak's records instead",
			       o->max_p99_us > 0 ? "max-p99" : "min-gbit");
	return 0;
}

/* Combinations that depend on what was given, and so are gone once the defaults stand in a job. */
static int check(struct options *o) {
	struct job *job = &o->job;
	bool lat = o->command == COMMAND_LAT;
	int r;

	if (job->iterations && job->duration_ns)
		return failure(-EINVAL, EXIT_USAGE, "--iterations and --duration exclude each other; give one");
	if (job->report_all && job->duration_ns)
		return failure(-EINVAL, EXIT_USAGE,
			       "--report-all keeps every latency; give --iterations, not --duration");
	if (job->report_all && job->iterations > JOB_REPORT_ALL_MAX)
		return failure(-ERANGE, EXIT_USAGE, "--report-all with --iterations %ju is too much; give at most %d",
			       (uintmax_t) job->iterations, JOB_REPORT_ALL_MAX);
	if (job->gap_ns && job->rate_unit != RATE_NONE)
		return failure(-EINVAL, EXIT_USAGE, "--gap and --rate both set the pace; give one");
	if (job->device[0] && job->devices[0])
		return failure(-EINVAL, EXIT_USAGE, "--device and --devices both name this end's devices; give one");
	if (job->server_device[0] && job->server_devices[0])
		return failure(-EINVAL, EXIT_USAGE,
			       "--server-device and --server-devices both name the server's devices; give one");
	if (lat && job->outstanding > 1)
		return failure(-EINVAL, EXIT_USAGE,
			       "--outstanding %u is not a latency; perch lat has 1, use perch bw", job->outstanding);
	if (o->lines && *o->flow)
		return failure(-EINVAL, EXIT_USAGE, "--flow and --lines exclude each other; give one");
	if (o->command == COMMAND_MEET && !*o->flow && !o->lines)
		return failure(-EINVAL, EXIT_USAGE, "perch meet needs --flow ID, the same on every side");
	r = check_soak(o);
	return r < 0 ? r : check_choices(o);
}

static bool is_given(const struct options *o, const char *name) {
	for (size_t i = 0; i < job_members_size; i++)
		if (o->given[i] && streq(job_members[i].name, name))
			return true;
	return false;
}

/* Defaults that depend on other options. */
static int complete(struct options *o) {
	const char *token = getenv("PERCH_TOKEN_FILE");
	struct job *job = &o->job;
	bool lat = o->command == COMMAND_LAT, transfer = o->command == COMMAND_TRANSFER;
	bool rate = o->command == COMMAND_RATE;

	if (o->any_frequency && job->clock == CLOCK_KIND_CYCLES)
		job->ignore_mismatch = true;
	if (op_is_general_atomic(job->op) && job->atomic_op == ATOMIC_NONE)
		job->atomic_op = job->op == OP_COMPARE_ATOMIC ? ATOMIC_CSWAP : ATOMIC_SUM;
	if (!job->n_sizes) {
		/* an atomic works on one word, whatever else is asked */
		job->sizes[0] = op_is_atomic(job->op) ? job_word_bytes(job) : lat ? 8 : rate ? 64 : 64 << 10;
		job->n_sizes = 1;
	}
	if (rate && !job->iterations && !job->duration_ns)
		job->duration_ns = OPTIONS_RATE_DURATION_S * NSEC_PER_SEC;
	if (!job->iterations && !job->duration_ns)
		job->iterations = transfer ? OPTIONS_TRANSFER_ITERATIONS
				  : lat	   ? OPTIONS_LAT_ITERATIONS
					   : OPTIONS_BW_ITERATIONS;
	if (!job->outstanding)
		job->outstanding = transfer || rate ? OPTIONS_TRANSFER_OUTSTANDING : lat ? 1 : OPTIONS_BW_OUTSTANDING;
	if (rate && !is_given(o, "batch"))
		job->batch = MIN((uint32_t) OPTIONS_RATE_BATCH, job->outstanding);
	if (rate && !is_given(o, "cq-moderation"))
		job->cq_moderation = MAX(MIN((uint32_t) OPTIONS_RATE_MODERATION, job_rate_depth(job)), 1u);
	if (transfer || rate)
		job_complete_lanes(job);
	job->timeout_ns = o->timeout_ns;
	if (*o->soak_file && !job->interval_ns)
		job->interval_ns = MIN(OPTIONS_SOAK_INTERVAL_S * NSEC_PER_SEC, job->duration_ns);
	if (!o->reconnect_ns)
		o->reconnect_ns = OPTIONS_RECONNECT_S * NSEC_PER_SEC;
	if (!o->stall_ns)
		o->stall_ns = OPTIONS_STALL_MS * NSEC_PER_MSEC;
	if (!*o->token_file && token && copy_string(o->token_file, sizeof(o->token_file), token) < 0)
		return failure(-ENAMETOOLONG, EXIT_USAGE, "the path in PERCH_TOKEN_FILE is too long");
	return 0;
}

/* Before a subcommand only questions make sense. */
static int parse_without_command(int argc, char **argv) {
	for (size_t i = 0; argc == 2 && option_at(i); i++) {
		const struct option_entry *e = option_at(i);
		const char letter[] = { '-', e->letter, 0 };

		if (e->type == OPTION_PRINT && ((strncmp(argv[1], "--", 2) == 0 && streq(argv[1] + 2, e->name)) ||
						(e->letter && streq(argv[1], letter)))) {
			e->print(stdout, COMMAND_INVALID);
			return 1;
		}
	}
	return refuse_command(argc < 2 ? NULL : argv[1]);
}

/* argv[0] is the subcommand's name. */
static int parse_command(enum command command, int argc, char **argv, struct options *ret) {
	_cleanup_free_ struct options *o = malloc(sizeof(*o));
	bool printed = false;
	int r;

	if (!o)
		return failure(-ENOMEM, EXIT_HOST, "no memory for the command line");
	set_defaults(command, o);
	r = parse_options(argc, argv, o, &printed);
	if (r < 0 || printed)
		return r < 0 ? r : 1;
	r = parse_operands(argc, argv, o);
	if (r < 0)
		return r;
	r = check(o);
	if (r < 0)
		return r;
	r = complete(o);
	if (r < 0)
		return r;
	*ret = *o;
	return 0;
}

/* After "check" stand the words of the command that is checked, and are parsed as they will be then. */
static int parse_check(int argc, char **argv, struct options *ret) {
	int command = argc < 2 ? COMMAND_INVALID : command_from_name(argv[1]), r;

	if (command < 0 || !command_measures((enum command) command))
		return parse_command(COMMAND_CHECK, argc, argv, ret);
	r = parse_command((enum command) command, argc - 1, argv + 1, ret);
	if (r != 0)
		return r;
	ret->command = COMMAND_CHECK;
	ret->checked = (enum command) command;
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret) {
	const struct personality *personality;
	int command, r, skip;

	if (mori_asked(argc, argv, &skip))
		return mori_parse(argc - skip, argv + skip, ret);
	r = personality_asked(argc, argv, &personality, &skip);
	if (r != 0)
		return r < 0 ? r : personality_parse(personality, argc - skip, argv + skip, ret);
	command = argc < 2 ? COMMAND_INVALID : command_from_name(argv[1]);
	if (command < 0)
		return parse_without_command(argc, argv);
	if (command == COMMAND_CHECK)
		return parse_check(argc - 1, argv + 1, ret);
	return parse_command((enum command) command, argc - 1, argv + 1, ret);
}

int options_validate(const struct options *o) {
	const struct job *job = &o->job;

	if (o->max_p99_us > 0 && job->kind == KIND_LATENCY && job->iterations > 0 && job->iterations < 1000)
		return failure(-EINVAL, EXIT_USAGE,
			       "--max-p99 with --iterations %llu: a p99 needs 1000 samples (ten above it)",
			       (unsigned long long) job->iterations);
	return job_validate(job);
}
