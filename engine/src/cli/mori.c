/* SPDX-License-Identifier: Apache-2.0 */
#include "mori.h"

#include <getopt.h>
#include <stdio.h>

#include "backends/registry.h"
#include "base/suggest.h"
#include "control/control.h"
#include "job/parse.h"
#include "words.h"

#define MORI "mori_io_benchmark"

enum {
	MORI_WARMUP = 2,                /* transfers before it measures: the first one's bytes are compared */
	MORI_SIZE_MIN = 8,              /* --all; the most is 1 MiB */
	MORI_SIZE_MAX = 1 << 20,
};

/* Its arguments with its defaults, and behind them those that only perch has. */
struct request {
	const char *host, *op, *poll, *log, *backend, *devices, *server_devices, *memory;
	uint64_t size, batch, initiators, targets, queue_pairs, threads, iters, sweep_min, sweep_max, port;
	bool all, all_batch, batched, session;
};

static const char *const ops[] = { "read", "write", NULL };
static const char *const polls[] = { "polling", "event", NULL };
static const char *const levels[] = { "trace", "debug", "info", "warning", "error", "critical", NULL };

#define TEXT(member) .text = true, .offset = offsetof(struct request, member)
#define COUNT(member) .offset = offsetof(struct request, member), .takes = true
#define FLAG(member) .offset = offsetof(struct request, member)

static const struct argument {
	const char *name, *help;
	bool text, takes;               /* takes: a whole number; neither: a flag */
	size_t offset;
	uint64_t max;                   /* of a number, from 1 */
	const char *const *choices;
} arguments[] = {
	{ "host", "Address of the target; without it this is the target", TEXT(host) },
	{ "op-type", "read or write (default: read)", TEXT(op), .choices = ops },
	{ "buffer-size", "Bytes of a transfer (default: 32768)", COUNT(size), .max = JOB_SIZE_MAX },
	{ "all", "Sizes from 8 to 1048576, doubling", FLAG(all) },
	{ "sweep-start-size", "First size of --all", COUNT(sweep_min), .max = JOB_SIZE_MAX },
	{ "sweep-max-size", "Last size of --all", COUNT(sweep_max), .max = JOB_SIZE_MAX },
	{ "transfer-batch-size", "Transfers of a batch (default: 256)", COUNT(batch), .max = JOB_BATCH_MAX },
	{ "all-batch", "Batches of 1 to 32768 transfers, doubling", FLAG(all_batch) },
	{ "enable-batch-transfer", "Post a batch as lists (default: transfer by transfer)", FLAG(batched) },
	{ "enable-sess", "Look a transfer up once (default: each time)", FLAG(session) },
	{ "num-initiator-dev", "Devices of the initiator (default: 1)", COUNT(initiators), .max = JOB_DEVICES_MAX },
	{ "num-target-dev", "Devices of the target (default: 1); the shorter side goes around", COUNT(targets),
	  .max = JOB_DEVICES_MAX },
	{ "num-qp-per-transfer", "Queue pairs of a thread (default: 1)", COUNT(queue_pairs),
	  .max = JOB_QUEUE_PAIRS_MAX },
	{ "num-worker-threads", "Threads of a rank (default: 1)", COUNT(threads), .max = JOB_THREADS_MAX },
	{ "iters", "Batches that are measured (default: 128)", COUNT(iters), .max = 1000000000 },
	{ "poll_cq_mode", "polling or event (default: polling)", TEXT(poll), .choices = polls },
	{ "log-level", "trace, debug, info, warning, error or critical (default: info)", TEXT(log), .choices = levels },
	{ "port", "perch: TCP port of the target (default: 18600)", COUNT(port), .max = UINT16_MAX },
	{ "backend", "perch: verbs, ofi, cxi or tcp (default: verbs)", TEXT(backend) },
	{ "devices", "perch: the initiator's, by name (default: the first usable RDMA devices here)", TEXT(devices) },
	{ "server-devices", "perch: the target's, by name (default: those of the same names)", TEXT(server_devices) },
	{ "memory", "perch: host, cuda or rocm, as perch transfer (default: host)", TEXT(memory) },
	{ "help", "Print this help and exit", .text = false },
};

enum { ARGUMENT_HELP = ELEMENTSOF(arguments) - 1, FIRST = 256 };

int mori_asked(int argc, char **argv, int *ret_skip) {
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;

	*ret_skip = 0;
	if (argc > 0 && streq(slash ? slash + 1 : argv[0], MORI))
		return 1;
	*ret_skip = 2;
	return argc > 2 && streq(argv[1], "--personality") && streq(argv[2], MORI);
}

static void print_help(void) {
	(void) printf("Usage:\n  " MORI " [--port N]\n  " MORI " --host ADDRESS [ARGUMENTS]\n\nArguments:\n");
	for (size_t i = 0; i < ELEMENTSOF(arguments); i++)
		(void) printf("  --%-24s%s\n", arguments[i].name, arguments[i].help);
	(void) printf("\nThis is perch: both ends must be. Without a token the target serves loopback only.\n");
}

static bool is_one_of(const char *word, const char *const *words) {
	while (*words && !streq(*words, word))
		words++;
	return *words;
}

static int store(const struct argument *a, const char *value, struct request *r) {
	void *field = (char *) r + a->offset;
	uint64_t n;

	if (a->text) {
		if (!*value || (a->choices && !is_one_of(value, a->choices)))
			return failure(-EINVAL, EXIT_USAGE, MORI ": --%s '%.64s': it takes: %s", a->name, value,
				       a->help);
		*(const char **) field = value;
		return 0;
	}
	if (!a->takes) {
		*(bool *) field = true;
		return 0;
	}
	if (parse_u64(value, &n) < 0 || n < 1 || n > a->max)
		return failure(-EINVAL, EXIT_USAGE, MORI ": --%s '%.64s': give a whole number from 1 to %ju", a->name,
			       value, (uintmax_t) a->max);
	*(uint64_t *) field = n;
	return 0;
}

static int refuse(int answer, const char *word) {
	const char *names[ELEMENTSOF(arguments) + 1] = { NULL }, *nearest;

	for (size_t i = 0; i < ELEMENTSOF(arguments); i++)
		names[i] = arguments[i].name;
	nearest = strncmp(word, "--", 2) == 0 ? suggest_nearest(word + 2, names) : NULL;
	if (answer == ':')
		return failure(-EINVAL, EXIT_USAGE, MORI ": %s needs a value", word);
	return failure(-EINVAL, EXIT_USAGE, MORI ": unknown argument '%s'%s%s; " MORI " --help lists them", word,
		       nearest ? ", did you mean --" : "", nearest ? nearest : "");
}

/* >0: the help was printed. */
static int parse_request(int argc, char **argv, struct request *r) {
	struct option longs[ELEMENTSOF(arguments) + 1] = { { 0 } };
	int answer, e = 0;

	for (size_t i = 0; i < ELEMENTSOF(arguments); i++)
		longs[i] = (struct option) { .name = arguments[i].name, .val = FIRST + (int) i,
					     .has_arg = arguments[i].text || arguments[i].takes };
	opterr = 0;
	optind = 0; /* glibc: forget an earlier command line */
	while (e == 0 && (answer = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
		if (answer < FIRST)
			return refuse(answer, argv[optind - 1]);
		if (answer == FIRST + ARGUMENT_HELP) {
			print_help();
			return 1;
		}
		e = store(&arguments[answer - FIRST], optarg, r);
	}
	return e == 0 && optind < argc ? refuse('?', argv[optind]) : e;
}

/* The first devices of this host that could be used now. */
struct found {
	char names[JOB_DEVICES_MAX][JOB_NAME_MAX];
	uint64_t n;
};

static int find(const struct device *d, void *userdata) {
	struct found *f = userdata;

	if (d->rdma && !d->remedy && f->n < JOB_DEVICES_MAX && (f->n == 0 || !streq(f->names[f->n - 1], d->name)))
		(void) copy_string(f->names[f->n++], JOB_NAME_MAX, d->name);
	return 0;
}

static void join(const struct found *f, uint64_t n, char ret[JOB_DEVICES_TEXT]) {
	*ret = '\0';
	for (uint64_t i = 0; i < n; i++)
		(void) snprintf(ret + strlen(ret), JOB_DEVICES_TEXT - strlen(ret), "%s%s", i ? "," : "", f->names[i]);
}

/* The counts are those of the names; one device each is the engine's to choose. */
static int say_devices(const struct request *r, struct words *w, uint64_t *ret_pairs) {
	const char *ours = r->devices, *theirs = r->server_devices;
	char first[JOB_DEVICES_TEXT], others[JOB_DEVICES_TEXT];
	const uint64_t pairs = MAX(r->initiators, r->targets);
	const struct backend_facts *facts = backend_facts_of(r->backend);
	struct found f = { .n = 0 };

	*ret_pairs = pairs;
	if (pairs == 1 && !ours && !theirs)
		return 0;
	if (facts && !(facts->flags & BACKEND_DEVICES))
		return failure(-EINVAL, EXIT_USAGE, MORI ": backend %s has no devices to choose from; leave out "
			       "--num-initiator-dev, --num-target-dev, --devices and --server-devices", r->backend);
	if (!ours || !theirs) {
		const struct backend *b = backend_find(r->backend);
		int e = b ? b->probe(find, &f) : 0;

		if (e < 0)
			return e;
		if (f.n < MAX(ours ? 0 : r->initiators, theirs ? 0 : r->targets))
			return failure(-ENODEV, EXIT_HOST, MORI ": %ju pairs of devices, and %ju usable RDMA devices "
				       "here; name them with --devices and --server-devices", (uintmax_t) pairs,
				       (uintmax_t) f.n);
		join(&f, r->initiators, first);
		join(&f, r->targets, others);
	}
	ours = ours ? ours : first;
	theirs = theirs ? theirs : others;
	if (job_list_length(ours) != r->initiators || job_list_length(theirs) != r->targets)
		return failure(-EINVAL, EXIT_USAGE, MORI ": --devices names %u and --server-devices %u; give these as "
			       "--num-initiator-dev and --num-target-dev", job_list_length(ours),
			       job_list_length(theirs));
	say(w, "--devices");
	say(w, "%s", ours);
	say(w, "--server-devices");
	say(w, "%s", theirs);
	return 0;
}

static int say_transfer(const struct request *r, struct words *w) {
	uint64_t pairs;
	int e;

	say(w, "transfer");
	say(w, "--backend");
	say(w, "%s", r->backend);
	say(w, "--op");
	say(w, "%s", r->op);
	say(w, "--size");
	if (r->all)
		say(w, "%ju:%ju", (uintmax_t) r->sweep_min, (uintmax_t) r->sweep_max);
	else
		say(w, "%ju", (uintmax_t) r->size);
	say(w, "--batch");
	if (r->all_batch)
		say(w, "1:%d", JOB_BATCH_MAX);
	else
		say(w, "%ju", (uintmax_t) r->batch);
	e = say_devices(r, w, &pairs);
	if (e < 0)
		return e;
	say_if(w, !r->batched, "--consecutive");
	say_if(w, !r->session, "--no-session");
	say(w, "--queue-pairs");
	say(w, "%ju", (uintmax_t) r->queue_pairs);
	say(w, "--threads");
	say(w, "%ju", (uintmax_t) (pairs * r->threads));
	say(w, "--iterations");
	say(w, "%ju", (uintmax_t) r->iters);
	say(w, "--warmup");
	say(w, "%d", MORI_WARMUP);
	say(w, "--completion");
	say(w, "%s", streq(r->poll, "event") ? "event" : "busy");
	say(w, "--log-level");
	say(w, "%s", is_one_of(r->log, levels + 3) ? "warning" : "info");
	say(w, "--memory");
	say(w, "%s", r->memory);
	return 0;
}

/* As the original says them; reports read these lines. */
static void print_configuration(const struct request *r) {
	(void) printf("MORI-IO Benchmark Configurations:\n  op_type: %s\n  host: %s\n  port: %ju\n", r->op, r->host,
		      (uintmax_t) r->port);
	(void) printf("  num_initiator_dev: %ju\n  num_target_dev: %ju\n  buffer_size: %ju B\n",
		      (uintmax_t) r->initiators, (uintmax_t) r->targets, (uintmax_t) r->size);
	(void) printf("  transfer_batch_size: %ju\n  enable_batch_transfer: %s\n  enable_sess: %s\n",
		      (uintmax_t) r->batch, r->batched ? "True" : "False", r->session ? "True" : "False");
	(void) printf("  num_qp_per_transfer: %ju\n  num_worker_threads: %ju\n  poll_cq_mode: PollCqMode.%s\n"
		      "  iters: %ju\n\n", (uintmax_t) r->queue_pairs, (uintmax_t) r->threads,
		      streq(r->poll, "event") ? "EVENT" : "POLLING", (uintmax_t) r->iters);
}

int mori_parse(int argc, char **argv, struct options *ret) {
	struct request r = {
		.op = "read", .poll = "polling", .log = "info", .backend = "verbs", .memory = "host",
		.size = 32768, .batch = 256, .initiators = 1, .targets = 1, .queue_pairs = 1, .threads = 1,
		.iters = 128,
		.sweep_min = MORI_SIZE_MIN, .sweep_max = MORI_SIZE_MAX, .port = CONTROL_PORT,
	};
	struct words w = { .argc = 0 };
	int e;

	e = parse_request(argc, argv, &r);
	if (e != 0)
		return e;
	/* Whoever reads this output must not take it for the original's. */
	notice(MORI " is perch in the place of MORI-IO's benchmark; its buffers lie in %s memory, and the two "
	       "cannot talk to each other", r.memory);
	say(&w, "perch");
	if (!r.host)
		say(&w, "serve");
	else
		e = say_transfer(&r, &w);
	if (e < 0)
		return e;
	say(&w, "--port");
	say(&w, "%ju", (uintmax_t) r.port);
	say_if(&w, !r.host, "--once");
	say_if(&w, r.host, "--");
	say_if(&w, r.host, r.host);
	if (w.full)
		return failure(-ENAMETOOLONG, EXIT_USAGE, MORI ": the target's address or a device's name is too long");
	e = options_parse(w.argc, w.argv, ret);
	if (e < 0 || !r.host)
		return e;
	ret->boxed = true;
	print_configuration(&r);
	return 0;
}
