/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target of jobs from the network. Random text is hardly ever JSON, and hardly ever has all members;
 * so inputs of the second kind change some members of a right job. What is accepted must be valid,
 * and the same after one more trip.
 */
#include "job/job.h"
#include "base/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of the null backend, or of those with most choices. */
static json_t *right_job(const char *backend) {
	struct job job;
	json_t *json = NULL;

	job_defaults(&job);
	(void) copy_string(job.backend, sizeof(job.backend), backend);
	job.sizes[0] = 8;
	job.sizes[1] = 16;
	job.n_sizes = 2;
	job.iterations = 10;
	job.outstanding = 1;
	job.timeout_ns = NSEC_PER_SEC;
	if (job_to_json(&job, &json) < 0)
		abort();
	return json;
}

struct input {
	const uint8_t *data;
	size_t size;
};

static uint64_t take(struct input *i, size_t bytes) {
	uint64_t v = 0;

	for (; bytes > 0 && i->size > 0; bytes--, i->size--)
		v = v << 8 | *i->data++;
	return v;
}

static json_t *some_value(struct input *i, int depth) {
	static const char *const words[] = { "send", "write", "write-imm", "fetch-add", "tcp", "ofi", "null", "verbs",
					     "uc", "ud", "latency", "bandwidth", "event", "messages", "bits", "cxi",
					     "atomic-op", "compare-atomic", "sum", "cswap", "float", "uint128",
					     "matching", "low-latency" };
	json_t *a;
	size_t n;

	switch (take(i, 1) % 9) {
	case 0:
		return json_null();
	case 1:
		return json_boolean(take(i, 1) & 1);
	case 2:
		return json_integer((json_int_t) take(i, 8));
	case 3:
		return json_integer((json_int_t) take(i, 1));
	case 4:
		return json_real((double) (int64_t) take(i, 8) / 1e6);
	case 5:
		return json_string(words[take(i, 1) % ELEMENTSOF(words)]);
	case 6:
		n = take(i, 1);
		n = MIN(n, i->size);
		a = json_stringn((const char *) i->data, n); /* NULL where it is no UTF-8 */
		i->data += n;
		i->size -= n;
		return a ? a : json_string("");
	default:
		a = json_array();
		for (n = take(i, 1); n > 0 && depth < 2; n--)
			(void) json_array_append_new(a, some_value(i, depth + 1));
		return a;
	}
}

static json_t *changed_job(struct input i) {
	static const char *const backends_with_choices[] = { "null", "verbs", "cxi" };
	json_t *json = right_job(backends_with_choices[take(&i, 1) % ELEMENTSOF(backends_with_choices)]);

	while (i.size > 1) {
		uint64_t at = take(&i, 1) % (json_object_size(json) + 1);
		void *member = json_object_iter(json);

		while (at-- > 0 && member)
			member = json_object_iter_next(json, member);
		if (member)
			(void) json_object_iter_set_new(json, member, some_value(&i, 0));
		else
			(void) json_object_set_new(json, "another", some_value(&i, 0));
	}
	return json;
}

static void check(const json_t *json) {
	struct job job, again;
	json_t *sent, *sent_again;

	failure_reset();
	if (job_from_json(json, &job) < 0) {
		if (!failure_text()[0])
			abort();
		return;
	}
	if (job_validate(&job) < 0 || job_largest_size(&job) > JOB_SIZE_MAX || job_to_json(&job, &sent) < 0)
		abort();
	if (job_from_json(sent, &again) < 0 || job_to_json(&again, &sent_again) < 0 || !json_equal(sent, sent_again))
		abort();
	json_decref(sent);
	json_decref(sent_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	json_t *json;

	if (size == 0)
		return 0;
	if (data[0] & 1)
		json = json_loadb((const char *) data + 1, size - 1, JSON_REJECT_DUPLICATES, NULL);
	else
		json = changed_job((struct input) { data + 1, size - 1 });
	check(json);
	json_decref(json);
	return 0;
}
