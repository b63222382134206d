/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job as JSON, on its way to the server. One table names every member once, for both directions,
 * so that what is sent and what is read cannot drift apart.
 */
#include "job_names.h"
#include "base/message.h"

enum member_type {
	MEMBER_NAME,            /* char[JOB_NAME_MAX] */
	MEMBER_LIST,            /* char[JOB_DEVICES_TEXT], or [JOB_CPUS_TEXT] */
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
	{ MEMBER(cpu, MEMBER_LIST), NULL, 0 },
	{ MEMBER(server_cpu, MEMBER_LIST), NULL, 0 },
	{ MEMBER(numa, MEMBER_NAME), NULL, 0 },
	{ MEMBER(server_numa, MEMBER_NAME), NULL, 0 },
	{ MEMBER(rails, MEMBER_LIST), NULL, 0 },
	{ MEMBER(server_rails, MEMBER_LIST), NULL, 0 },
	{ MEMBER(op, MEMBER_ENUM), op_names, OP_MAX },
	{ MEMBER(definition, MEMBER_ENUM), definition_names, DEFINITION_MAX },
	{ MEMBER(completion, MEMBER_ENUM), completion_mode_names, COMPLETION_MODE_MAX },
	{ MEMBER(clock, MEMBER_ENUM), clock_names, CLOCK_KIND_MAX },
	{ MEMBER(ignore_mismatch, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(iterations, MEMBER_U64), NULL, 0 },
	{ MEMBER(duration_ns, MEMBER_U64), NULL, 0 },
	{ MEMBER(warmup, MEMBER_U64), NULL, 0 },
	{ MEMBER(gap_ns, MEMBER_U64), NULL, 0 },
	{ MEMBER(barrier, MEMBER_BOOL), NULL, 0 },
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
	{ MEMBER(sl, MEMBER_I32), NULL, 0 },
	{ MEMBER(traffic_class, MEMBER_I32), NULL, 0 },
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
	{ MEMBER(tx_memory, MEMBER_NAME), NULL, 0 },
	{ MEMBER(rx_memory, MEMBER_NAME), NULL, 0 },
	{ MEMBER(bounce, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(svc_id, MEMBER_I32), NULL, 0 },
	{ MEMBER(server_svc_id, MEMBER_I32), NULL, 0 },
	{ MEMBER(vni, MEMBER_I32), NULL, 0 },
	{ MEMBER(fabric_class, MEMBER_ENUM), fabric_class_names, FABRIC_CLASS_MAX },
	{ MEMBER(no_idc, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(no_ll, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(rdzv, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(unrestricted, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(no_hrp, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(keys, MEMBER_ENUM), key_mode_names, KEYS_MAX },
	{ MEMBER(atomic_op, MEMBER_ENUM), atomic_op_names, ATOMIC_OP_MAX },
	{ MEMBER(atomic_type, MEMBER_ENUM), atomic_type_names, ATOMIC_TYPE_MAX },
	{ MEMBER(devices, MEMBER_LIST), NULL, 0 },
	{ MEMBER(server_devices, MEMBER_LIST), NULL, 0 },
	{ MEMBER(cross_rail, MEMBER_U32), NULL, 0 },
	{ MEMBER(consecutive, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(no_session, MEMBER_BOOL), NULL, 0 },
	{ MEMBER(buffer_bytes, MEMBER_U64), NULL, 0 },
	{ MEMBER(stride_bytes, MEMBER_U64), NULL, 0 },
	{ MEMBER(chunk_bytes, MEMBER_U64), NULL, 0 },
	{ MEMBER(max_chunks, MEMBER_U32), NULL, 0 },
	{ MEMBER(threads, MEMBER_U32), NULL, 0 },
#undef MEMBER
};

/* Enums are ints here; asserted, since the table writes them through int pointers. */
_Static_assert(sizeof(enum op) == sizeof(int) && sizeof(enum connection) == sizeof(int), "enums are ints");

static json_t *member_to_json(const struct member *m, const struct job *job) {
	const void *p = (const char *) job + m->offset;

	switch (m->type) {
	case MEMBER_NAME:
	case MEMBER_LIST:
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
	json_t *o = json_object(), *sizes = json_array(), *batches = json_array();

	for (size_t i = 0; i < ELEMENTSOF(members); i++)
		(void) json_object_set_new(o, members[i].key, member_to_json(&members[i], job));
	for (size_t i = 0; i < job->n_sizes; i++)
		(void) json_array_append_new(sizes, json_integer((json_int_t) job->sizes[i]));
	for (size_t i = 0; i < job->n_batches; i++)
		(void) json_array_append_new(batches, json_integer(job->batches[i]));
	/* A list without an owner is released by what fails to take it. */
	if ((json_object_set_new(o, "sizes", sizes) | json_object_set_new(o, "batches", batches)) < 0) {
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
	case MEMBER_LIST:
		return json_is_string(v) ? copy_string(p, m->type == MEMBER_NAME ? JOB_NAME_MAX : JOB_DEVICES_TEXT,
						       json_string_value(v)) : -EBADMSG;
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

/* Whole numbers, `max` of them at most, none above `highest`. */
static int numbers_from_json(const json_t *v, uint64_t highest, uint64_t *ret, size_t max, size_t *ret_n) {
	size_t n = json_array_size(v);

	if (!json_is_array(v) || n > max)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++) {
		const json_t *number = json_array_get(v, i);

		if (!json_is_integer(number) || json_integer_value(number) < 0 ||
		    (uint64_t) json_integer_value(number) > highest)
			return -EBADMSG;
		ret[i] = (uint64_t) json_integer_value(number);
	}
	*ret_n = n;
	return 0;
}

static int batches_from_json(const json_t *v, struct job *job) {
	uint64_t batches[JOB_BATCHES_MAX];
	int r;

	r = numbers_from_json(v, JOB_BATCH_MAX, batches, JOB_BATCHES_MAX, &job->n_batches);
	for (size_t i = 0; r == 0 && i < job->n_batches; i++)
		job->batches[i] = (uint32_t) batches[i];
	return r;
}

int job_from_json(const json_t *json, struct job *ret) {
	struct job job = { 0 };
	int r;

	/* Same number of members, and each of ours is there: then there is none that we do not know. */
	if (!json_is_object(json) || json_object_size(json) != ELEMENTSOF(members) + 2)
		return failure(-EBADMSG, EXIT_PEER, "the peer's job has not the members of this version");
	for (size_t i = 0; i < ELEMENTSOF(members); i++) {
		r = member_from_json(&members[i], json_object_get(json, members[i].key), &job);
		if (r < 0)
			return failure(-EBADMSG, EXIT_PEER, "the peer's job has no valid '%s'", members[i].key);
	}
	r = numbers_from_json(json_object_get(json, "sizes"), INT64_MAX, job.sizes, JOB_SIZES_MAX, &job.n_sizes);
	if (r == 0)
		r = batches_from_json(json_object_get(json, "batches"), &job);
	if (r < 0)
		return failure(-EBADMSG, EXIT_PEER, "the peer's job has no valid 'sizes' or 'batches'");
	r = job_validate(&job);
	if (r < 0)
		return r;
	*ret = job;
	return 0;
}
