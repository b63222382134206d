/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job as JSON, on its way to the server. One table names every member once, for both directions, so that what is sent and
 * what is read cannot drift apart.
 */
#include "job_names.h"
#include "message.h"

enum member_type {
	MEMBER_NAME,
	MEMBER_ENUM,
	MEMBER_U64,
	MEMBER_U32,
	MEMBER_I32,
	MEMBER_I64,
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
	{ MEMBER(connection, MEMBER_ENUM), connection_names, CONNECTION_MAX },
	{ MEMBER(ib_port, MEMBER_U32), NULL, 0 },
	{ MEMBER(server_ib_port, MEMBER_U32), NULL, 0 },
	{ MEMBER(gid_index, MEMBER_I32), NULL, 0 },
	{ MEMBER(server_gid_index, MEMBER_I32), NULL, 0 },
	{ MEMBER(mtu, MEMBER_U32), NULL, 0 },
	{ MEMBER(sl, MEMBER_U32), NULL, 0 },
	{ MEMBER(traffic_class, MEMBER_U32), NULL, 0 },
	{ MEMBER(queue_pairs, MEMBER_U32), NULL, 0 },
	{ MEMBER(batch, MEMBER_U32), NULL, 0 },
	{ MEMBER(cq_moderation, MEMBER_U32), NULL, 0 },
	{ MEMBER(inline_bytes, MEMBER_I64), NULL, 0 },
	{ MEMBER(srq, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(rdma_cm, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(relaxed_ordering, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(retry, MEMBER_U32), NULL, 0 },
	{ MEMBER(rnr_retry, MEMBER_U32), NULL, 0 },
	{ MEMBER(timeout_exponent, MEMBER_U32), NULL, 0 },
	{ MEMBER(huge, MEMBER_U64), NULL, 0 },
#undef MEMBER
};

/* Enums are ints here; asserted, since the table writes them through int pointers. */
_Static_assert(sizeof(enum op) == sizeof(int) && sizeof(enum connection) == sizeof(int), "enums are ints");

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
	case MEMBER_I32:
		return json_integer(*(const int32_t *) p);
	case MEMBER_I64:
		return json_integer(*(const int64_t *) p);
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
	case MEMBER_I32:
		if (!json_is_integer(v) || json_integer_value(v) < INT32_MIN || json_integer_value(v) > INT32_MAX)
			return -EBADMSG;
		*(int32_t *) p = (int32_t) json_integer_value(v);
		return 0;
	case MEMBER_I64:
		if (!json_is_integer(v))
			return -EBADMSG;
		*(int64_t *) p = json_integer_value(v);
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
