/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <math.h>

#include "backend.h"
#include "message.h"

static const char *const op_names[OP_MAX] = {
	[OP_SEND] = "send",
	[OP_WRITE] = "write",
	[OP_READ] = "read",
	[OP_FETCH_ADD] = "fetch-add",
	[OP_COMPARE_SWAP] = "compare-swap",
};
static const char *const kind_names[KIND_MAX] = {
	[KIND_LATENCY] = "latency",
	[KIND_BANDWIDTH] = "bandwidth",
};
static const char *const definition_names[DEFINITION_MAX] = {
	[DEFINITION_AUTO] = "auto",
	[DEFINITION_HALF_ROUND_TRIP] = "half_round_trip",
	[DEFINITION_COMPLETION] = "completion",
};
static const char *const completion_mode_names[COMPLETION_MODE_MAX] = {
	[COMPLETION_BUSY] = "busy",
	[COMPLETION_EVENT] = "event",
};
static const char *const clock_names[CLOCK_KIND_MAX] = {
	[CLOCK_KIND_MONOTONIC] = "monotonic",
	[CLOCK_KIND_CYCLES] = "cycles",
};
static const char *const rate_unit_names[RATE_UNIT_MAX] = {
	[RATE_NONE] = "none",
	[RATE_MESSAGES] = "messages",
	[RATE_BITS] = "bits",
};

static int name_index(const char *const *names, int max, const char *name) {
	for (int i = 0; i < max; i++)
		if (streq(names[i], name))
			return i;
	return -EINVAL;
}

const char *op_name(int op) {
	return op >= 0 && op < OP_MAX ? op_names[op] : "unknown";
}

int op_from_name(const char *name) {
	/* What cxi_atomic_* and perftest's ib_atomic_* measure by default. */
	return streq(name, "atomic") ? OP_FETCH_ADD : name_index(op_names, OP_MAX, name);
}

const char *kind_name(int kind) {
	return kind >= 0 && kind < KIND_MAX ? kind_names[kind] : "unknown";
}

const char *definition_name(int definition) {
	return definition >= 0 && definition < DEFINITION_MAX ? definition_names[definition] : "unknown";
}

const char *completion_mode_name(int mode) {
	return mode >= 0 && mode < COMPLETION_MODE_MAX ? completion_mode_names[mode] : "unknown";
}

uint64_t job_largest_size(const struct job *job) {
	uint64_t largest = 0;

	for (size_t i = 0; i < job->n_sizes; i++)
		largest = MAX(largest, job->sizes[i]);
	return largest;
}

static int validate_backend(const struct job *job) {
	bool known;
	const struct backend *b = backend_find(job->backend, &known);

	if (!b && known)
		return failure(-EOPNOTSUPP, EXIT_HOST, "backend %s: this perch was built without it; `perch --version` lists what it has",
			       job->backend);
	if (!b)
		return failure(-EINVAL, EXIT_USAGE, "unknown backend '%s'; `perch --version` lists the backends", job->backend);
	if (!(b->ops & (1u << job->op)))
		return failure(-EINVAL, EXIT_USAGE, "--op %s: the %s backend does not have it", op_name(job->op), b->name);
	if (job->provider[0] && !(b->flags & BACKEND_PROVIDERS))
		return failure(-EINVAL, EXIT_USAGE, "--provider %s: the %s backend has no providers", job->provider, b->name);
	if (job->device[0] && !(b->flags & BACKEND_DEVICES))
		return failure(-EINVAL, EXIT_USAGE, "--device %s: the %s backend has no devices to choose from", job->device, b->name);
	if (job->completion == COMPLETION_EVENT && !b->wait)
		return failure(-EINVAL, EXIT_USAGE, "--completion event: the %s backend cannot sleep; use --completion busy", b->name);
	return 0;
}

static int validate_sizes(const struct job *job) {
	if (job->n_sizes == 0 || job->n_sizes > JOB_SIZES_MAX)
		return failure(-EINVAL, EXIT_USAGE, "a job has 1 to %d sizes", JOB_SIZES_MAX);
	for (size_t i = 0; i < job->n_sizes; i++) {
		uint64_t size = job->sizes[i];

		if (size == 0 || size > JOB_SIZE_MAX)
			return failure(-EINVAL, EXIT_USAGE, "--size %llu: a message has 1 to %llu bytes (4 GiB - 1)",
				       (unsigned long long) size, (unsigned long long) JOB_SIZE_MAX);
		if (op_is_atomic(job->op) && size % sizeof(uint64_t) != 0)
			return failure(-EINVAL, EXIT_USAGE, "--size %llu: --op %s works on 64-bit words: use a multiple of 8",
				       (unsigned long long) size, op_name(job->op));
	}
	return 0;
}

static int validate_definition(const struct job *job) {
	bool half = job->op == OP_SEND || job->op == OP_WRITE, complete = job->op != OP_SEND;

	if (job->kind == KIND_BANDWIDTH && job->definition != DEFINITION_AUTO)
		return failure(-EINVAL, EXIT_USAGE, "--definition belongs to latency; bandwidth has one definition");
	if ((job->definition == DEFINITION_HALF_ROUND_TRIP && !half) || (job->definition == DEFINITION_COMPLETION && !complete))
		return failure(-EINVAL, EXIT_USAGE, "--definition %s: --op %s is only measured as %s", definition_name(job->definition),
			       op_name(job->op), half ? "half_round_trip" : "completion");
	return 0;
}

static int validate_load(const struct job *job) {
	if ((job->iterations == 0) == (job->duration_ns == 0))
		return failure(-EINVAL, EXIT_USAGE, "give either --iterations or --duration, and not 0");
	if (job->outstanding == 0 || job->outstanding > JOB_OUTSTANDING_MAX)
		return failure(-EINVAL, EXIT_USAGE, "--outstanding %u: 1 to %d messages", job->outstanding, JOB_OUTSTANDING_MAX);
	if (job->kind == KIND_LATENCY && (job->outstanding != 1 || job->bidirectional))
		return failure(-EINVAL, EXIT_USAGE, "latency is measured with one message at a time, one way: "
			       "--outstanding and --bidirectional belong to bw");
	if (job->bidirectional && job->verify && op_is_atomic(job->op))
		return failure(-EINVAL, EXIT_USAGE, "--verify with --bidirectional: the results of --op %s land where the peer's operations "
			       "work, so neither could be checked; leave one of them out", op_name(job->op));
	if (job->bidirectional && job->interval_ns && job->op != OP_SEND)
		return failure(-EINVAL, EXIT_USAGE, "--interval with --bidirectional: what the peer's --op %s moves is not seen while it runs; "
			       "leave one of them out", op_name(job->op));
	if (job->kind == KIND_BANDWIDTH && job->gap_ns)
		return failure(-EINVAL, EXIT_USAGE, "--gap belongs to lat; bw is slowed with --rate");
	if (job->report_all && (job->kind != KIND_LATENCY || !job->iterations || job->iterations > JOB_REPORT_ALL_MAX))
		return failure(-EINVAL, EXIT_USAGE, "--report-all needs lat with --iterations of at most %d", JOB_REPORT_ALL_MAX);
	if (job->gap_ns && job->rate_unit != RATE_NONE)
		return failure(-EINVAL, EXIT_USAGE, "--gap and --rate both set the pace: give one of them");
	if (job->rate_unit != RATE_NONE && !(isfinite(job->rate) && job->rate > 0))
		return failure(-EINVAL, EXIT_USAGE, "--rate must be above 0");
	/* Counters that a wrap could overtake: 2^62 ns are 146 years. */
	if ((job->duration_ns | job->gap_ns | job->interval_ns | job->timeout_ns) >> 62 || job->timeout_ns == 0)
		return failure(-EINVAL, EXIT_USAGE, "a time is out of range: above 0 for --timeout, below 146 years for all");
	return 0;
}

int job_validate(const struct job *job) {
	int r;

	r = validate_backend(job);
	if (r < 0)
		return r;
	r = validate_sizes(job);
	if (r < 0)
		return r;
	r = validate_definition(job);
	if (r < 0)
		return r;
	return validate_load(job);
}

/*
 * JSON. One table names every member once, for both directions, so that what is sent and what is read cannot drift apart.
 */
enum member_type {
	MEMBER_NAME,
	MEMBER_ENUM,
	MEMBER_U64,
	MEMBER_U32,
	MEMBER_BOOL,
	MEMBER_REAL,
};

static const struct member {
	const char *key;
	enum member_type type;
	size_t offset;
	const char *const *names;       /* MEMBER_ENUM */
	int max;
} members[] = {
#define MEMBER(k, t) .key = #k, .type = t, .offset = offsetof(struct job, k)
	{ MEMBER(kind, MEMBER_ENUM), kind_names, KIND_MAX },
	{ MEMBER(backend, MEMBER_NAME), NULL, 0 },
	{ MEMBER(provider, MEMBER_NAME), NULL, 0 },
	{ MEMBER(device, MEMBER_NAME), NULL, 0 },
	{ MEMBER(server_device, MEMBER_NAME), NULL, 0 },
	{ MEMBER(op, MEMBER_ENUM), op_names, OP_MAX },
	{ MEMBER(definition, MEMBER_ENUM), definition_names, DEFINITION_MAX },
	{ MEMBER(completion, MEMBER_ENUM), completion_mode_names, COMPLETION_MODE_MAX },
	{ MEMBER(clock, MEMBER_ENUM), clock_names, CLOCK_KIND_MAX },
	{ MEMBER(iterations, MEMBER_U64), NULL, 0 },
	{ MEMBER(duration_ns, MEMBER_U64), NULL, 0 },
	{ MEMBER(warmup, MEMBER_U64), NULL, 0 },
	{ MEMBER(gap_ns, MEMBER_U64), NULL, 0 },
	{ MEMBER(outstanding, MEMBER_U32), NULL, 0 },
	{ MEMBER(bidirectional, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(verify, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(rate_unit, MEMBER_ENUM), rate_unit_names, RATE_UNIT_MAX },
	{ MEMBER(rate, MEMBER_REAL), NULL, 0 },
	{ MEMBER(interval_ns, MEMBER_U64), NULL, 0 },
	{ MEMBER(report_all, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(timeout_ns, MEMBER_U64), NULL, 0 },
#undef MEMBER
};

/* Enums are ints here; asserted, since the table writes them through int pointers. */
_Static_assert(sizeof(enum op) == sizeof(int) && sizeof(enum kind) == sizeof(int), "enums are ints");

static json_t *member_to_json(const struct member *m, const struct job *job) {
	const void *p = (const char *) job + m->offset;

	switch (m->type) {
	case MEMBER_NAME:
		return json_string(p);
	case MEMBER_ENUM:
		return json_string(m->names[*(const int *) p]);
	case MEMBER_U64:
		return json_integer((json_int_t) * (const uint64_t *) p);
	case MEMBER_U32:
		return json_integer(*(const uint32_t *) p);
	case MEMBER_BOOL:
		return json_boolean(*(const bool *) p);
	case MEMBER_REAL:
		return json_real(*(const double *) p);
	}
	return NULL;
}

int job_to_json(const struct job *job, json_t **ret) {
	json_t *o = json_object(), *sizes = json_array();

	for (size_t i = 0; i < ELEMENTSOF(members); i++)
		(void) json_object_set_new(o, members[i].key, member_to_json(&members[i], job));
	for (size_t i = 0; i < job->n_sizes; i++)
		(void) json_array_append_new(sizes, json_integer((json_int_t) job->sizes[i]));
	if (!o || !sizes || json_object_set_new(o, "sizes", sizes) < 0) {
		json_decref(o);
		return -ENOMEM;
	}
	*ret = o;
	return 0;
}

static int member_from_json(const struct member *m, const json_t *v, struct job *job) {
	void *p = (char *) job + m->offset;
	int i;

	switch (m->type) {
	case MEMBER_NAME:
		return json_is_string(v) ? copy_string(p, JOB_NAME_MAX, json_string_value(v)) : -EBADMSG;
	case MEMBER_ENUM:
		i = json_is_string(v) ? name_index(m->names, m->max, json_string_value(v)) : -EBADMSG;
		if (i < 0)
			return i;
		*(int *) p = i;
		return 0;
	case MEMBER_U64:
		if (!json_is_integer(v) || json_integer_value(v) < 0)
			return -EBADMSG;
		*(uint64_t *) p = (uint64_t) json_integer_value(v);
		return 0;
	case MEMBER_U32:
		if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > UINT32_MAX)
			return -EBADMSG;
		*(uint32_t *) p = (uint32_t) json_integer_value(v);
		return 0;
	case MEMBER_BOOL:
		if (!json_is_boolean(v))
			return -EBADMSG;
		*(bool *) p = json_is_true(v);
		return 0;
	case MEMBER_REAL:
		if (!json_is_number(v))
			return -EBADMSG;
		*(double *) p = json_number_value(v);
		return 0;
	}
	return -EBADMSG;
}

static int sizes_from_json(const json_t *v, struct job *job) {
	size_t n = json_array_size(v);

	if (!json_is_array(v) || n > JOB_SIZES_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++) {
		const json_t *size = json_array_get(v, i);

		if (!json_is_integer(size) || json_integer_value(size) < 0)
			return -EBADMSG;
		job->sizes[i] = (uint64_t) json_integer_value(size);
	}
	job->n_sizes = n;
	return 0;
}

int job_from_json(const json_t *json, struct job *ret) {
	struct job job = { 0 };
	int r;

	/* Same number of members, and each of ours is there: then there is none that we do not know. */
	if (!json_is_object(json) || json_object_size(json) != ELEMENTSOF(members) + 1)
		return failure(-EBADMSG, EXIT_PEER, "the peer's job has not the members of this version");
	for (size_t i = 0; i < ELEMENTSOF(members); i++) {
		r = member_from_json(&members[i], json_object_get(json, members[i].key), &job);
		if (r < 0)
			return failure(-EBADMSG, EXIT_PEER, "the peer's job has no valid '%s'", members[i].key);
	}
	r = sizes_from_json(json_object_get(json, "sizes"), &job);
	if (r < 0)
		return failure(-EBADMSG, EXIT_PEER, "the peer's job has no valid 'sizes'");
	r = job_validate(&job);
	if (r < 0)
		return r;
	*ret = job;
	return 0;
}
