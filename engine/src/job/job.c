/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <math.h>

#include "backend_facts.h"
#include "job_names.h"
#include "members.h"
#include "memory_kind.h"
#include "parse.h"
#include "base/cpu_list.h"
#include "base/message.h"

uint64_t job_largest_size(const struct job *job) {
	uint64_t largest = 0;

	for (size_t i = 0; i < job->n_sizes; i++)
		largest = MAX(largest, job->sizes[i]);
	return largest;
}

static int validate_backend(const struct job *job, const struct backend_facts *b) {
	char others[BACKENDS_WITH_MAX];

	if (job_has_lanes(job) && !(b->flags & BACKEND_LANES))
		return failure(-EINVAL, EXIT_USAGE, "--backend %s has no %s; give --backend verbs, ofi, cxi or tcp",
			       b->name, job->kind == KIND_RATE ? "message rate" : "transfers");
	if (job->kind == KIND_TRANSFER && job->op != OP_WRITE && job->op != OP_READ)
		return failure(-EINVAL, EXIT_USAGE, "--op %s is no transfer; write and read are",
			       op_name((int) job->op));
	if (job->kind == KIND_RATE && job->op != OP_SEND && job->op != OP_WRITE && job->op != OP_READ)
		return failure(-EINVAL, EXIT_USAGE, "--op %s: perch rate measures send, write or read",
			       op_name((int) job->op));
	if (!job_has_lanes(job) && !(b->ops & (1u << job->op)))
		return failure(-EINVAL, EXIT_USAGE, "--op %s: the %s backend does not have it%s", op_name(job->op),
			       b->name, backends_with(0, 1u << job->op, 0, others));
	if (job->provider[0] && !(b->flags & BACKEND_PROVIDERS))
		return failure(-EINVAL, EXIT_USAGE, "--provider %s: the %s backend has no providers", job->provider,
			       b->name);
	if ((job->device[0] || job->server_device[0]) && !(b->flags & BACKEND_DEVICES))
		return failure(-EINVAL, EXIT_USAGE, "--%s %s: the %s backend has no devices to choose from%s",
			       job->device[0] ? "device" : "server-device",
			       job->device[0] ? job->device : job->server_device, b->name,
			       backends_with(0, 0, BACKEND_DEVICES, others));
	if (job->completion == COMPLETION_EVENT && !(b->flags & BACKEND_SLEEPS))
		return failure(-EINVAL, EXIT_USAGE,
			       "--completion event: the %s backend cannot sleep; use --completion busy", b->name);
	return 0;
}

int64_t member_number(const struct option_entry *e, const struct job *job) {
	const void *p = member_of(e, job);

	switch (e->form) {
	case FORM_BOOL:
		return *(const bool *) p;
	case FORM_U32:
		return *(const uint32_t *) p;
	case FORM_I32:
		return *(const int32_t *) p;
	default:
		return *(const int64_t *) p; /* no unsigned one is above INT64_MAX in a valid job */
	}
}

void member_set_number(const struct option_entry *e, struct job *job, int64_t value) {
	void *p = (char *) job + e->offset;

	switch (e->form) {
	case FORM_BOOL:
		*(bool *) p = value != 0;
		break;
	case FORM_U32:
		*(uint32_t *) p = (uint32_t) value;
		break;
	case FORM_I32:
		*(int32_t *) p = (int32_t) value;
		break;
	default:
		*(int64_t *) p = value;
	}
}

/* Whether it is a member that only some backends take. */
static bool is_choice(const struct option_entry *e) {
	return e->key && e->backends;
}

void job_defaults(struct job *ret) {
	memset(ret, 0, sizeof(*ret)); /* padding too: jobs are compared as bytes in tests */
	for (size_t i = 0; i < job_members_size; i++)
		if (is_choice(&job_members[i]))
			member_set_number(&job_members[i], ret, job_members[i].unset);
	(void) copy_string(ret->tx_memory, sizeof(ret->tx_memory), "host");
	(void) copy_string(ret->rx_memory, sizeof(ret->rx_memory), "host");
}

const char *member_label(const struct option_entry *e) {
	return e->label ? e->label : e->name;
}

bool member_fits(const struct option_entry *e, const struct job *job, const struct backend_facts *b) {
	return !e->backends || e->backends & 1u << (b - backend_facts) || e->any_backend & 1u << job->kind;
}

/* The largest value of a member: an enum has its names. */
static int64_t largest(const struct option_entry *e) {
	int64_t n = 0;

	if (!e->names)
		return e->form == FORM_BOOL ? 1 : (int64_t) e->max;
	while (e->names[n])
		n++;
	return n - 1;
}

/* Each by itself; from the network anything may come. */
static int validate_ranges(const struct job *job, const struct backend_facts *b) {
	for (size_t i = 0; i < job_members_size; i++) {
		const struct option_entry *e = &job_members[i];
		int64_t value = is_choice(e) ? member_number(e, job) : 0, max = largest(e);
		char others[BACKENDS_WITH_MAX];

		if (!is_choice(e) || value == e->unset)
			continue;
		if (!member_fits(e, job, b))
			return failure(-EINVAL, EXIT_USAGE, "--%s: the %s backend does not have it%s", member_label(e),
				       b->name, backends_with(e->backends, 0, 0, others));
		if (value < (int64_t) e->min || value > max)
			return failure(-EINVAL, EXIT_USAGE, "--%s %lld: %lld to %lld", member_label(e),
				       (long long) value, (long long) e->min, (long long) max);
	}
	if (job->verbs.mtu && (job->verbs.mtu < JOB_MTU_MIN || (job->verbs.mtu & (job->verbs.mtu - 1))))
		return failure(-EINVAL, EXIT_USAGE, "--mtu %u: 256, 512, 1024, 2048 or 4096", job->verbs.mtu);
	return 0;
}

/*
 * A message that may be lost names itself by its first word;
 * of less, every corruption would pass for another message's name.
 */
enum { VERIFY_LOSSY_MIN = 8 };

static int validate_connection(const struct job *job) {
	const struct verbs_options *v = &job->verbs;
	const char *name = connection_names[v->connection];
	uint32_t mtu = v->mtu ? v->mtu : JOB_MTU_MAX;

	if (!connection_has_op(v->connection, job->op))
		return failure(-EINVAL, EXIT_USAGE, "--connection %s has no --op %s; it has %s, and rc has all", name,
			       op_name((int) job->op), v->connection == CONNECTION_UC
			       ? "send, send-imm, write and write-imm" : "send and send-imm");
	/* What the device's own MTU allows is asked there; this much no device can do. */
	if (v->connection == CONNECTION_UD && job_largest_size(job) > mtu)
		return failure(-EINVAL, EXIT_USAGE,
			       "--size %llu: with --connection ud a message is one packet, of at most %u bytes here",
			       (unsigned long long) job_largest_size(job), mtu);
	for (size_t i = 0; v->connection != CONNECTION_RC && job->verify && i < job->n_sizes; i++)
		if (job->sizes[i] < VERIFY_LOSSY_MIN)
			return failure(-EINVAL, EXIT_USAGE,
				       "--verify with --connection %s needs messages of %d bytes or more to number "
				       "them, and --size is %llu; raise --size, or use --connection rc", name,
				       VERIFY_LOSSY_MIN, (unsigned long long) job->sizes[i]);
	if (v->rdma_cm && v->pkey)
		return failure(-EINVAL, EXIT_USAGE, "--pkey with --rdma-cm: the connection manager finds "
			       "the partition; leave one of them out");
	if (v->rdma_cm && v->connection != CONNECTION_RC)
		return failure(-EINVAL, EXIT_USAGE,
			       "--rdma-cm makes reliable connections only; leave it or --connection %s out", name);
	if (v->connection != CONNECTION_RC &&
	    (v->retry != JOB_RETRY_MAX || v->rnr_retry != JOB_RETRY_MAX || v->timeout_exponent != JOB_TIMEOUT_EXPONENT))
		return failure(-EINVAL, EXIT_USAGE, "--connection %s acknowledges nothing, and so has no --retry, "
			       "--rnr-retry or --timeout-exponent", name);
	return 0;
}

bool job_relaxed_ordering(const struct job *job) {
	return job->verbs.relaxed_ordering == RELAXED_ORDERING_ON ||
	       (job->verbs.relaxed_ordering == RELAXED_ORDERING_AUTO &&
		(job->kind != KIND_LATENCY || (job_uses_gpu(job) && !job->bounce)));
}

const char *job_unseen_write(const struct job *job) {
	if (job->completion == COMPLETION_EVENT)
		return "memory cannot be polled while sleeping; "
		       "use --completion busy, --op write-imm or --definition completion";
	if (!job->bounce && job_uses_gpu(job))
		return "the host cannot poll a GPU's memory; use --op write-imm or --definition completion";
	if (job_relaxed_ordering(job))
		return "with --relaxed-ordering on the last byte may be visible before the others; "
		       "use --op write-imm or --definition completion";
	return NULL;
}

enum definition job_definition(const struct job *job) {
	const struct backend_facts *b = backend_facts_of(job->backend);

	if (op_takes_receive(job->op))
		return DEFINITION_HALF_ROUND_TRIP;
	if (job->op != OP_WRITE)
		return DEFINITION_COMPLETION;
	if (job->definition != DEFINITION_AUTO || !(b->flags & BACKEND_STAMPS))
		return job->definition;
	return job_unseen_write(job) ? DEFINITION_COMPLETION : DEFINITION_HALF_ROUND_TRIP;
}

enum key_mode job_keys(const struct job *job) {
	const struct cxi_options *c = &job->cxi;

	return c->keys == KEYS_CLIENT && c->unrestricted && job->op == OP_READ ? KEYS_MATCHING : c->keys;
}

static int validate_choices(const struct job *job, const struct backend_facts *b) {
	int r;

	r = validate_ranges(job, b);
	if (r < 0)
		return r;
	r = validate_connection(job);
	if (r < 0)
		return r;
	if (job->verbs.srq && !op_takes_receive(job->op))
		return failure(-EINVAL, EXIT_USAGE, "--srq: --op %s takes no receives; send, send-imm and write-imm do",
			       op_name((int) job->op));
	if (job->verbs.inline_bytes > 0 && (job->op == OP_READ || op_is_atomic(job->op)))
		return failure(-EINVAL, EXIT_USAGE, "--inline %lld: --op %s sends no payload with its work request; "
			       "send, send-imm, write and write-imm do", (long long) job->verbs.inline_bytes,
			       op_name((int) job->op));
	if (op_is_atomic(job->op) && b->flags & BACKEND_ONE_WORD &&
	    (job->n_sizes != 1 || job->sizes[0] != job_word_bytes(job)))
		return failure(-EINVAL, EXIT_USAGE, "--size: the %s of %s works on one word; use --size %llu",
			       op_name((int) job->op), b->name, (unsigned long long) job_word_bytes(job));
	return 0;
}

/* Each of CXI's belongs to what it can change; elsewhere it would be passed over in silence. */
static int validate_fabric(const struct job *job) {
	const struct {
		bool wrong;
		const char *option, *why;
	} checks[] = {
		{ job->cxi.no_idc && job->op == OP_READ, "no-idc",
		  "carries no payload to the target; all other operations do" },
		{ job->cxi.rdzv && !op_is_send(job->op), "rdzv", "has no rendezvous; send does" },
		{ job->cxi.unrestricted && op_is_send(job->op), "unrestricted",
		  "is always ordered; write, read and atomics have the choice" },
		{ job->cxi.no_hrp && job->op != OP_WRITE, "no-hrp", "is never a high-rate put; write is" },
		{ job->cxi.keys != KEYS_CLIENT && op_is_send(job->op), "keys",
		  "names no memory of the target; write, read and atomics do" },
	};

	for (size_t i = 0; i < ELEMENTSOF(checks); i++)
		if (checks[i].wrong)
			return failure(-EINVAL, EXIT_USAGE, "--%s: --op %s %s", checks[i].option,
				       op_name((int) job->op), checks[i].why);
	return 0;
}

/* What an atomic operation does, and on what. */
static int validate_atomic(const struct job *job) {
	bool general = op_is_general_atomic(job->op);
	enum atomic_kind kind = job->op == OP_ATOMIC_OP ? ATOMIC_PLAIN : job->op == OP_FETCH_ATOMIC ? ATOMIC_FETCH
		: ATOMIC_COMPARE;

	if (!general && (job->atomic_op != ATOMIC_NONE || job->atomic_type != ATOMIC_UINT64))
		return failure(-EINVAL, EXIT_USAGE, "--atomic-op and --atomic-type: --op %s says itself what it does; "
			       "they belong to atomic-op, fetch-atomic and compare-atomic", op_name((int) job->op));
	if (!general)
		return 0;
	if (!atomic_op_is(job->atomic_op, kind))
		return failure(-EINVAL, EXIT_USAGE, "--atomic-op %s: --op %s does not have it; it has %s",
			       atomic_op_names[job->atomic_op], op_name((int) job->op), atomic_kind_words(kind));
	if (!atomic_type_has(job->atomic_type, job->atomic_op))
		return failure(-EINVAL, EXIT_USAGE, "--atomic-op %s is not defined for --atomic-type %s (fi_atomic(3))",
			       atomic_op_names[job->atomic_op], atomic_type_names[job->atomic_type]);
	if (job->verify && (kind == ATOMIC_PLAIN || !atomic_is_predictable(job->atomic_type)))
		return failure(-EINVAL, EXIT_USAGE, "--verify with --op %s --atomic-type %s: %s",
			       op_name((int) job->op), atomic_type_names[job->atomic_type],
			       kind == ATOMIC_PLAIN ? "nothing comes back that could be checked; use fetch-atomic" :
			       "it is checked for integers of up to 64 bits, float and double");
	return 0;
}

int job_validate_depth(const struct job *job, uint32_t depth) {
	const unsigned long long n = (unsigned long long) depth * job->queue_pairs;

	if (n <= JOB_PIECES_MAX)
		return 0;
	return failure(-EINVAL, EXIT_USAGE, "--outstanding %u on each of --queue-pairs %u are %llu messages, "
		       "and %d are possible; lower one of them", job->outstanding, job->queue_pairs, n,
		       JOB_PIECES_MAX);
}

/* What each queue pair has under way. */
static int validate_queues(const struct job *job) {
	const struct {
		const char *name;
		uint32_t value;         /* messages of one queue pair */
	} each[] = { { "batch", job->batch }, { "cq-moderation", job->cq_moderation } };

	if (job->kind == KIND_LATENCY && (job->queue_pairs > 1 || job->batch > 1 || job->cq_moderation > 1))
		return failure(-EINVAL, EXIT_USAGE, "latency is measured with one message at a time: "
			       "--queue-pairs, --batch and --cq-moderation belong to bw");
	/*
	 * Else a post list would never be full, or a queue would be full of work requests of which none ever completes.
	 */
	for (size_t i = 0; i < ELEMENTSOF(each); i++)
		if (each[i].value > job->outstanding)
			return failure(-EINVAL, EXIT_USAGE,
				       "--%s %u needs --outstanding of at least as much, and it is %u; raise it",
				       each[i].name, each[i].value, job->outstanding);
	return job_validate_depth(job, job->outstanding);
}

/* Each queue pair has places of its own. Transfers have more to hold: job_transfer.c. */
static int validate_footprint(const struct job *job) {
	const uint64_t size = job_largest_size(job), least = place_bytes(size) * job->queue_pairs;
	struct places p;

	if (job->kind == KIND_TRANSFER || job->footprint == 0)
		return 0;
	if (job->footprint < least)
		return failure(-EINVAL, EXIT_USAGE, "--footprint %llu: at least %llu bytes, one message of the largest "
			       "--size%s", (unsigned long long) job->footprint, (unsigned long long) least,
			       job->queue_pairs > 1 ? " for each queue pair" : "");
	if (!job->verify || job_has_lanes(job))
		return 0;
	places_scatter(job->footprint / job->queue_pairs, size, JOB_PIECES_MAX / job->queue_pairs, &p);
	return places_suffice(&p, job->footprint, size, job->queue_pairs, job_least_window(job));
}

static int validate_sizes(const struct job *job) {
	if (job->n_sizes == 0 || job->n_sizes > JOB_SIZES_MAX)
		return failure(-EINVAL, EXIT_USAGE, "a job has 1 to %d sizes", JOB_SIZES_MAX);
	for (size_t i = 0; i < job->n_sizes; i++) {
		uint64_t size = job->sizes[i];

		if (size == 0 || size > JOB_SIZE_MAX)
			return failure(-EINVAL, EXIT_USAGE, "--size %llu: a message has 1 to %llu bytes (4 GiB - 1)",
				       (unsigned long long) size, (unsigned long long) JOB_SIZE_MAX);
		if (size % job_word_bytes(job) != 0)
			return failure(-EINVAL, EXIT_USAGE,
				       "--size %llu: --op %s works on %llu-bit words here: use a multiple of %llu",
				       (unsigned long long) size, op_name(job->op),
				       (unsigned long long) job_word_bytes(job) * 8,
				       (unsigned long long) job_word_bytes(job));
	}
	return 0;
}

static int validate_definition(const struct job *job, const struct backend_facts *b) {
	bool half = op_is_send(job->op) || op_is_write(job->op), complete = !op_takes_receive(job->op);

	if (job->kind != KIND_LATENCY && job->definition != DEFINITION_AUTO)
		return failure(-EINVAL, EXIT_USAGE, "--definition belongs to latency; %s has one definition",
			       kind_name((int) job->kind));
	if ((job->definition == DEFINITION_HALF_ROUND_TRIP && !half) ||
	    (job->definition == DEFINITION_COMPLETION && !complete))
		return failure(-EINVAL, EXIT_USAGE, "--definition %s: --op %s is only measured as %s",
			       definition_name(job->definition), op_name(job->op),
			       half ? "half_round_trip" : "completion");
	if (job->definition == DEFINITION_HALF_ROUND_TRIP && job->op == OP_WRITE && b->flags & BACKEND_STAMPS &&
	    job_unseen_write(job))
		return failure(-EINVAL, EXIT_USAGE, "--definition half_round_trip: %s cannot see a write arrive: %s",
			       b->name, job_unseen_write(job));
	return 0;
}

static int validate_load(const struct job *job) {
	if ((job->iterations == 0) == (job->duration_ns == 0))
		return failure(-EINVAL, EXIT_USAGE, "give either --iterations or --duration, and not 0");
	if (job->outstanding == 0 || job->outstanding > JOB_OUTSTANDING_MAX)
		return failure(-EINVAL, EXIT_USAGE, "--outstanding %u: 1 to %d messages", job->outstanding,
			       JOB_OUTSTANDING_MAX);
	if (job->kind == KIND_LATENCY && (job->outstanding != 1 || job->bidirectional))
		return failure(-EINVAL, EXIT_USAGE, "latency is measured with one message at a time, one way: "
			       "--outstanding and --bidirectional belong to bw");
	if (job->bidirectional && job->verify && op_is_atomic(job->op))
		return failure(-EINVAL, EXIT_USAGE, "--verify with --bidirectional: the results of --op %s land "
			       "where the peer's operations work, so neither could be checked; leave one of them out",
			       op_name(job->op));
	if (job->bidirectional && job->interval_ns && !op_takes_receive(job->op))
		return failure(-EINVAL, EXIT_USAGE, "--interval with --bidirectional: what the peer's --op %s moves "
			       "is not seen while it runs; leave one of them out", op_name(job->op));
	if (job->kind != KIND_LATENCY && job->barrier)
		return failure(-EINVAL, EXIT_USAGE,
			       "--barrier belongs to lat; bw has many outstanding messages, with no pause between two");
	if (job->ignore_mismatch && job->clock != CLOCK_KIND_CYCLES)
		return failure(-EINVAL, EXIT_USAGE, "--ignore-frequency-mismatch belongs to --clock cycles; "
			       "the other clock has no frequency to check");
	if (job->kind != KIND_LATENCY && job->gap_ns)
		return failure(-EINVAL, EXIT_USAGE, "--gap belongs to lat; bw is slowed with --rate");
	if (job->report_all && (job->kind != KIND_LATENCY || !job->iterations || job->iterations > JOB_REPORT_ALL_MAX))
		return failure(-EINVAL, EXIT_USAGE, "--report-all needs lat with --iterations of at most %d",
			       JOB_REPORT_ALL_MAX);
	if (job->gap_ns && job->rate_unit != RATE_NONE)
		return failure(-EINVAL, EXIT_USAGE, "--gap and --rate both set the pace: give one of them");
	if (job->rate_unit != RATE_NONE && !(isfinite(job->rate) && job->rate > 0))
		return failure(-EINVAL, EXIT_USAGE, "--rate must be above 0");
	/* Counters that a wrap could overtake: 2^62 ns are 146 years. */
	if ((job->duration_ns | job->warmup_ns | job->gap_ns | job->interval_ns | job->timeout_ns) >> 62 ||
	    job->timeout_ns == 0)
		return failure(-EINVAL, EXIT_USAGE,
			       "a time is out of range: above 0 for --timeout, below 146 years for all");
	return 0;
}

/* Who names no cores and no node. */
static bool names_none(const char *text) {
	return !text[0] || streq(text, "auto") || streq(text, "off");
}

int job_check_cpu(const char *text) {
	cpu_set_t set;

	return names_none(text) ? 0 : cpu_list_parse(text, &set);
}

int job_check_numa(const char *text) {
	uint64_t node = 0;
	int r = names_none(text) ? 0 : parse_u64(text, &node);

	return r < 0 ? r : node < CPU_SETSIZE ? 0 : -ERANGE;
}

int job_slot(const char *text, unsigned *ret_number, unsigned *ret_of) {
	char number[JOB_NAME_MAX];
	const char *slash = strchr(text, '/');
	uint64_t k = 1, n = 1;

	if (text[0]) {
		if (!slash || (size_t) (slash - text) >= sizeof(number))
			return -EINVAL;
		(void) snprintf(number, sizeof(number), "%.*s", (int) (slash - text), text);
		if (parse_u64(number, &k) < 0 || parse_u64(slash + 1, &n) < 0 || k < 1 || k > n || n > CPU_SETSIZE)
			return -EINVAL;
	}
	*ret_number = (unsigned) k;
	*ret_of = (unsigned) n;
	return 0;
}

static int validate_rails(const char *option, const char *list) {
	uint32_t n = job_list_length(list);
	char name[JOB_NAME_MAX];

	if (n > JOB_DEVICES_MAX)
		return failure(-EINVAL, EXIT_USAGE, "--%s names %u devices; %d at most", option, n, JOB_DEVICES_MAX);
	for (uint32_t i = 0; list[0] && i < n; i++)
		if (!job_list_entry(list, i, name) || !name[0])
			return failure(-EINVAL, EXIT_USAGE, "--%s '%.64s': entry %u of %u is not a device's name",
				       option, list, i + 1, n);
	return 0;
}

static int validate_places(const struct job *job) {
	unsigned number, of;
	int r = validate_rails("rails", job->rails);

	if (r == 0)
		r = validate_rails("server-rails", job->server_rails);
	if (r < 0)
		return r;
	if (job_slot(job->slot, &number, &of) < 0 || job_slot(job->server_slot, &number, &of) < 0)
		return failure(-EINVAL, EXIT_USAGE, "--slot and --server-slot take K/N, K from 1 to N, N up to %d",
			       CPU_SETSIZE);
	if (job_check_cpu(job->cpu) < 0 || job_check_cpu(job->server_cpu) < 0)
		return failure(-EINVAL, EXIT_USAGE, "--cpu and --server-cpu take auto, off, or a list of CPUs");
	if (job_check_numa(job->numa) < 0 || job_check_numa(job->server_numa) < 0)
		return failure(-EINVAL, EXIT_USAGE, "--numa and --server-numa take auto, off, or a NUMA node");
	return 0;
}

int job_validate(const struct job *job) {
	const struct backend_facts *b = backend_facts_of(job->backend);
	int r;

	if (!b)
		return failure(-EINVAL, EXIT_USAGE, "unknown backend '%s'; give tcp, verbs, ofi, cxi or null",
			       job->backend);
	r = validate_backend(job, b);
	if (r < 0)
		return r;
	r = validate_choices(job, b);
	if (r < 0)
		return r;
	r = validate_atomic(job);
	if (r < 0)
		return r;
	r = validate_fabric(job);
	if (r < 0)
		return r;
	r = validate_sizes(job);
	if (r < 0)
		return r;
	r = validate_definition(job, b);
	if (r < 0)
		return r;
	r = validate_load(job);
	if (r == 0)
		r = validate_places(job);
	if (r < 0)
		return r;
	if (job->kind == KIND_TRANSFER)
		r = job_validate_transfer(job, b);
	else if (job->kind == KIND_RATE)
		r = job_validate_rate(job, b);
	else
		r = validate_queues(job);
	if (r == 0)
		r = validate_footprint(job);
	return r < 0 ? r : memory_validate(job, b);
}
