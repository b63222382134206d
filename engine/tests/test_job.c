/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: a job survives its way to the peer unchanged, and no JSON that is not exactly a job becomes one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend.h"
#include "job.h"
#include "message.h"

static struct job sample(void) {
	return (struct job) {
		.kind = KIND_LATENCY,
		.backend = "null",
		.op = OP_WRITE,
		.definition = DEFINITION_COMPLETION,
		.clock = CLOCK_KIND_CYCLES,
		.sizes = { 1, 8, 4096, JOB_SIZE_MAX },
		.n_sizes = 4,
		.iterations = 1000,
		.warmup = 100,
		.outstanding = 1,
		.verify = true,
		.rate_unit = RATE_BITS,
		.rate = 2.5e9,
		.interval_ns = NSEC_PER_SEC,
		.report_all = true,
		.timeout_ns = 30 * NSEC_PER_SEC,
	};
}

static json_t *sample_json(void) {
	struct job job = sample();
	json_t *json;

	assert_int_equal(job_to_json(&job, &json), 0);
	return json;
}

/* What is refused leaves the output as it was, and says why. Releases `json`. */
static void refuse(json_t *json, int error) {
	struct job job, before;

	memset(&job, 0x5a, sizeof(job));
	before = job;
	failure_reset();
	assert_int_equal(job_from_json(json, &job), error);
	assert_memory_equal(&job, &before, sizeof(job));
	assert_true(failure_text()[0] != '\0');
	json_decref(json);
}

static void refuse_member(const char *key, json_t *value, int error) {
	json_t *json = sample_json();

	assert_int_equal(json_object_set_new(json, key, value), 0);
	refuse(json, error);
}

static void round_trip(const struct job *job) {
	json_t *json, *again;
	struct job copy;

	assert_int_equal(job_to_json(job, &json), 0);
	assert_int_equal(job_from_json(json, &copy), 0);
	assert_int_equal(job_to_json(&copy, &again), 0);
	assert_true(json_equal(json, again));
	assert_int_equal(copy.n_sizes, job->n_sizes);
	assert_memory_equal(copy.sizes, job->sizes, job->n_sizes * sizeof(job->sizes[0]));
	json_decref(json);
	json_decref(again);
}

static void test_round_trip(void **state) {
	struct job job = sample();

	(void) state;
	round_trip(&job);
	for (int op = 0; op < OP_MAX; op++)
		for (int kind = 0; kind < KIND_MAX; kind++) {
			job = (struct job) {
				.kind = (enum kind) kind,
				.backend = "null",
				.op = (enum op) op,
				.sizes = { 64 },
				.n_sizes = 1,
				.duration_ns = NSEC_PER_SEC,
				.outstanding = kind == KIND_BANDWIDTH ? JOB_OUTSTANDING_MAX : 1,
				.bidirectional = kind == KIND_BANDWIDTH,
				.timeout_ns = 1,
			};
			round_trip(&job);
		}
}

/* Every field that the peer must agree on travels: a copy with one of them changed is another job. */
static void test_nothing_is_left_out(void **state) {
	struct job job = sample(), copy;
	json_t *json = sample_json();

	(void) state;
	assert_int_equal(job_from_json(json, &copy), 0);
	assert_memory_equal(&copy, &job, sizeof(job));
	json_decref(json);
}

static void test_missing(void **state) {
	json_t *all = sample_json();
	const char *key;
	json_t *value;

	(void) state;
	json_object_foreach(all, key, value) {
		json_t *json = sample_json();

		assert_int_equal(json_object_del(json, key), 0);
		refuse(json, -EBADMSG);
		/* The right number of members does not help either. */
		json = sample_json();
		assert_int_equal(json_object_del(json, key), 0);
		assert_int_equal(json_object_set_new(json, "another", json_integer(1)), 0);
		refuse(json, -EBADMSG);
	}
	json_decref(all);
}

static void test_extra(void **state) {
	(void) state;
	refuse_member("another", json_integer(1), -EBADMSG);
	refuse_member("", json_null(), -EBADMSG);
}

static void test_not_an_object(void **state) {
	(void) state;
	refuse(json_array(), -EBADMSG);
	refuse(json_object(), -EBADMSG);
	refuse(json_string("job"), -EBADMSG);
	refuse(json_null(), -EBADMSG);
	refuse(NULL, -EBADMSG);
}

/* Each member gets a value of every type that it has not. */
static void test_wrong_type(void **state) {
	json_t *all = sample_json();
	const char *key;
	json_t *value;

	(void) state;
	json_object_foreach(all, key, value) {
		json_t *others[] = { json_null(), json_true(), json_integer(1), json_real(1.5), json_string("send"), json_array(), json_object() };

		for (size_t i = 0; i < ELEMENTSOF(others); i++) {
			bool number = json_is_real(value) && json_is_number(others[i]);
			bool flag = json_is_boolean(value) && json_is_boolean(others[i]);

			if (number || flag || json_typeof(value) == json_typeof(others[i]))
				json_decref(others[i]);
			else
				refuse_member(key, others[i], -EBADMSG);
		}
	}
	json_decref(all);
}

static void test_out_of_range(void **state) {
	static const char *const counts[] = { "iterations", "duration_ns", "warmup", "gap_ns", "interval_ns", "timeout_ns", "outstanding" };
	static const char *const names[] = { "kind", "op", "definition", "completion", "clock", "rate_unit" };
	static const char *const texts[] = { "backend", "provider", "device", "server_device" };
	char longer[JOB_NAME_MAX + 1] = "";

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(counts); i++)
		refuse_member(counts[i], json_integer(-1), -EBADMSG);
	refuse_member("outstanding", json_integer((json_int_t) UINT32_MAX + 1), -EBADMSG);
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		refuse_member(names[i], json_string(""), -EBADMSG);
		refuse_member(names[i], json_string("unknown"), -EBADMSG);
	}
	/* Exactly one byte too long: there must be room for the end. */
	memset(longer, 'x', JOB_NAME_MAX);
	for (size_t i = 0; i < ELEMENTSOF(texts); i++)
		refuse_member(texts[i], json_string(longer), -EBADMSG);
}

static json_t *sizes(json_t *first, size_t n) {
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		assert_int_equal(json_array_append(a, first), 0);
	json_decref(first);
	return a;
}

static void test_sizes(void **state) {
	(void) state;
	refuse_member("sizes", sizes(json_integer(8), 0), -EINVAL);
	refuse_member("sizes", sizes(json_integer(8), JOB_SIZES_MAX + 1), -EBADMSG);
	refuse_member("sizes", sizes(json_integer(0), 1), -EINVAL);
	refuse_member("sizes", sizes(json_integer(-8), 1), -EBADMSG);
	refuse_member("sizes", sizes(json_integer((json_int_t) JOB_SIZE_MAX + 1), 1), -EINVAL);
	refuse_member("sizes", sizes(json_integer(INT64_MAX), 2), -EINVAL);
	refuse_member("sizes", sizes(json_real(8), 1), -EBADMSG);
	refuse_member("sizes", sizes(json_string("8"), 1), -EBADMSG);
}

/* Combinations that the command line refuses are refused from the network too. */
static void test_combinations(void **state) {
	(void) state;
	refuse_member("backend", json_string("pigeon"), -EINVAL);
	refuse_member("backend", json_string("tcp"), -EINVAL); /* has no write */
	refuse_member("provider", json_string("shm"), -EINVAL);
	refuse_member("completion", json_string("event"), -EINVAL);
	refuse_member("iterations", json_integer(0), -EINVAL);
	refuse_member("duration_ns", json_integer(1), -EINVAL);
	refuse_member("outstanding", json_integer(0), -EINVAL);
	refuse_member("outstanding", json_integer(2), -EINVAL);
	refuse_member("outstanding", json_integer(JOB_OUTSTANDING_MAX + 1), -EINVAL);
	refuse_member("bidirectional", json_true(), -EINVAL);
	refuse_member("kind", json_string("bandwidth"), -EINVAL); /* has no definition, no report_all */
	refuse_member("gap_ns", json_integer(1), -EINVAL); /* there is a rate */
	refuse_member("rate", json_real(0), -EINVAL);
	refuse_member("rate", json_real(-1), -EINVAL);
	refuse_member("rate", json_integer(0), -EINVAL);
	refuse_member("timeout_ns", json_integer(0), -EINVAL);
	refuse_member("timeout_ns", json_integer(INT64_MAX), -EINVAL);
	refuse_member("iterations", json_integer(JOB_REPORT_ALL_MAX + 1), -EINVAL);
	refuse_member("op", json_string("send"), -EINVAL); /* is no completion */
	refuse_member("op", json_string("fetch-add"), -EINVAL); /* not of 1 byte */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_nothing_is_left_out),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_extra),
		cmocka_unit_test(test_not_an_object),
		cmocka_unit_test(test_wrong_type),
		cmocka_unit_test(test_out_of_range),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_combinations),
	};

	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
