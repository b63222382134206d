/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job as JSON, on its way to the server: each member of the table (members.c) that has a key, and the two lists.
 */
#include "members.h"
#include "base/message.h"

static json_t *member_to_json(const struct option_entry *m, const struct job *job) {
	const void *p = member_of(m, job);

	switch (m->form) {
	case FORM_TEXT:
		return json_string(p);
	case FORM_BOOL:
		return json_boolean(*(const bool *) p);
	case FORM_REAL:
		return json_real(*(const double *) p);
	default:
		return m->names ? json_string(m->names[member_number(m, job)]) : json_integer(member_number(m, job));
	}
}

int job_to_json(const struct job *job, json_t **ret) {
	json_t *o = json_object(), *sizes = json_array(), *batches = json_array();

	for (size_t i = 0; i < job_members_size; i++)
		if (job_members[i].key)
			(void) json_object_set_new(o, job_members[i].key, member_to_json(&job_members[i], job));
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

static int number_from_json(const struct option_entry *m, const json_t *v, struct job *job) {
	static const struct {
		json_int_t min, max;
	} ranges[] = {
		[FORM_U32] = { 0, UINT32_MAX }, [FORM_I32] = { INT32_MIN, INT32_MAX }, [FORM_U64] = { 0, INT64_MAX },
		[FORM_I64] = { INT64_MIN, INT64_MAX },
	};
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v) || n < ranges[m->form].min || n > ranges[m->form].max)
		return -EBADMSG;
	member_set_number(m, job, n);
	return 0;
}

static int enum_from_json(const struct option_entry *m, const json_t *v, struct job *job) {
	for (int i = 0; json_is_string(v) && m->names[i]; i++)
		if (streq(m->names[i], json_string_value(v))) {
			member_set_number(m, job, i);
			return 0;
		}
	return -EBADMSG;
}

static int member_from_json(const struct option_entry *m, const json_t *v, struct job *job) {
	void *p = (char *) job + m->offset;

	switch (m->form) {
	case FORM_TEXT:
		return json_is_string(v) ? copy_string(p, m->size, json_string_value(v)) : -EBADMSG;
	case FORM_BOOL:
		*(bool *) p = json_is_true(v);
		return json_is_boolean(v) ? 0 : -EBADMSG;
	case FORM_REAL:
		*(double *) p = json_number_value(v);
		return json_is_number(v) ? 0 : -EBADMSG;
	default:
		return m->names ? enum_from_json(m, v, job) : number_from_json(m, v, job);
	}
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
	size_t known = 2;
	int r;

	for (size_t i = 0; i < job_members_size; i++)
		known += job_members[i].key != NULL;
	/* Same number of members, and each of ours is there: then there is none that we do not know. */
	if (!json_is_object(json) || json_object_size(json) != known)
		return failure(-EBADMSG, EXIT_PEER, "the peer's job has not the members of this version");
	for (size_t i = 0; i < job_members_size; i++) {
		const struct option_entry *m = &job_members[i];

		r = m->key ? member_from_json(m, json_object_get(json, m->key), &job) : 0;
		if (r < 0)
			return failure(-EBADMSG, EXIT_PEER, "the peer's job has no valid '%s'", m->key);
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
