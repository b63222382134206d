/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: a job survives its way to the peer unchanged, and no JSON that is not exactly a job becomes one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/backend.h"
#include "job/job.h"
#include "job/members.h"
#include "base/message.h"

static struct job sample(void) {
	struct job job;

	job_defaults(&job);
	job.kind = KIND_LATENCY;
	(void) copy_string(job.backend, sizeof(job.backend), "null");
	job.op = OP_WRITE;
	job.definition = DEFINITION_COMPLETION;
	job.clock = CLOCK_KIND_CYCLES;
	memcpy(job.sizes, (uint64_t[]) { 1, 8, 4096, JOB_SIZE_MAX }, 4 * sizeof(job.sizes[0]));
	job.n_sizes = 4;
	job.iterations = 1000;
	job.warmup = 100;
	job.outstanding = 1;
	job.verify = true;
	job.rate_unit = RATE_BITS;
	job.rate = 2.5e9;
	job.interval_ns = NSEC_PER_SEC;
	job.report_all = true;
	job.timeout_ns = 30 * NSEC_PER_SEC;
	return job;
}

/* A bandwidth job with every choice of verbs away from its default. */
static struct job chosen(void) {
	struct job job;

	job_defaults(&job);
	job.kind = KIND_BANDWIDTH;
	(void) copy_string(job.backend, sizeof(job.backend), "verbs");
	(void) copy_string(job.device, sizeof(job.device), "rxe0");
	(void) copy_string(job.server_device, sizeof(job.server_device), "rxe1");
	job.op = OP_WRITE_IMM;
	job.sizes[0] = 4096;
	job.n_sizes = 1;
	job.iterations = 1000;
	job.outstanding = 64;
	job.timeout_ns = NSEC_PER_SEC;
	job.verbs.ib_port = 2;
	job.verbs.server_ib_port = JOB_IB_PORT_MAX;
	job.verbs.gid_index = 0;
	job.verbs.server_gid_index = JOB_GID_INDEX_MAX;
	job.verbs.mtu = 2048;
	job.verbs.sl = JOB_SL_MAX;
	job.verbs.traffic_class = JOB_TRAFFIC_CLASS_MAX;
	job.queue_pairs = 4;
	job.batch = 16;
	job.cq_moderation = 16;
	job.verbs.inline_bytes = 0;
	job.verbs.srq = job.verbs.rdma_cm = true;
	job.verbs.relaxed_ordering = RELAXED_ORDERING_ON;
	job.verbs.retry = 0;
	job.verbs.rnr_retry = 6;
	job.verbs.timeout_exponent = JOB_TIMEOUT_EXPONENT_MAX;
	(void) copy_string(job.tx_memory, sizeof(job.tx_memory), "huge:1G");
	(void) copy_string(job.rx_memory, sizeof(job.rx_memory), "huge:2M");
	return job;
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

static void refuse_choice(const char *key, json_t *value, int error) {
	struct job job = chosen();
	json_t *json;

	assert_int_equal(job_to_json(&job, &json), 0);
	assert_int_equal(json_object_set_new(json, key, value), 0);
	refuse(json, error);
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
		for (int kind = 0; kind <= KIND_BANDWIDTH; kind++) { /* transfers: test_transfer.c */
			job_defaults(&job);
			job.kind = (enum kind) kind;
			(void) copy_string(job.backend, sizeof(job.backend), "null");
			job.op = (enum op) op;
			job.sizes[0] = 64;
			job.n_sizes = 1;
			job.duration_ns = NSEC_PER_SEC;
			job.outstanding = kind == KIND_BANDWIDTH ? JOB_OUTSTANDING_MAX : 1;
			job.bidirectional = kind == KIND_BANDWIDTH;
			job.timeout_ns = 1;
			if (!(backend_facts[BACKEND_NULL].ops & 1u << op))
				continue;
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

	/* And each is read back from its own key: none of them equal. */
	job = chosen();
	assert_int_equal(job_to_json(&job, &json), 0);
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
		json_t *others[] = { json_null(), json_true(), json_integer(1), json_real(1.5), json_string("send"),
				     json_array(), json_object() };

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
	static const char *const counts[] = { "iterations", "duration_ns", "warmup", "warmup_ns", "gap_ns",
					      "interval_ns", "timeout_ns", "outstanding", "ib_port", "server_ib_port",
					      "mtu", "queue_pairs", "batch", "cq_moderation", "retry", "rnr_retry",
					      "timeout_exponent" };
	static const char *const names[] = { "kind", "op", "definition", "completion", "clock", "rate_unit",
					     "connection" };
	static const struct {
		const char *name;
		size_t room;
	} texts[] = { { "backend", JOB_NAME_MAX }, { "provider", JOB_NAME_MAX }, { "device", JOB_NAME_MAX },
		      { "server_device", JOB_NAME_MAX }, { "tx_memory", JOB_MEMORY_TEXT },
		      { "rx_memory", JOB_MEMORY_TEXT } };

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(counts); i++)
		refuse_member(counts[i], json_integer(-1), -EBADMSG);
	refuse_member("outstanding", json_integer((json_int_t) UINT32_MAX + 1), -EBADMSG);
	refuse_member("queue_pairs", json_integer((json_int_t) UINT32_MAX + 2), -EBADMSG); /* 1 when cut */
	refuse_member("gid_index", json_integer((json_int_t) INT32_MAX + 1), -EBADMSG);
	refuse_member("server_gid_index", json_integer((json_int_t) INT32_MIN - 1), -EBADMSG);
	refuse_member("sl", json_integer((json_int_t) UINT32_MAX + 1), -EBADMSG); /* 0 when cut */
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		refuse_member(names[i], json_string(""), -EBADMSG);
		refuse_member(names[i], json_string("unknown"), -EBADMSG);
	}
	/* Exactly one byte too long: there must be room for the end. */
	for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
		char longer[JOB_MEMORY_TEXT + 1] = "";

		memset(longer, 'x', texts[i].room);
		refuse_member(texts[i].name, json_string(longer), -EBADMSG);
	}
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

/* What a backend does not have is refused from the network too, whatever its value. */
static void test_choices_of_other_backends(void **state) {
	(void) state;
	refuse_member("connection", json_string("ud"), -EINVAL);
	refuse_member("queue_pairs", json_integer(2), -EINVAL);
	refuse_member("queue_pairs", json_integer(0), -EINVAL);
	refuse_member("gid_index", json_integer(0), -EINVAL);
	refuse_member("inline_bytes", json_integer(0), -EINVAL);
	refuse_member("inline_bytes", json_integer(INT64_MIN), -EINVAL);
	refuse_member("srq", json_true(), -EINVAL);
	refuse_member("retry", json_integer(6), -EINVAL);
	refuse_member("timeout_exponent", json_integer(UINT32_MAX), -EINVAL);
	assert_non_null(strstr(failure_text(), "--timeout-exponent: the null backend does not have it"));
	refuse_member("server_device", json_string("rxe0"), -EINVAL);
}

static void test_ranges_of_choices(void **state) {
	static const struct {
		const char *key;
		json_int_t value;
	} wrong[] = {
		{ "ib_port", 256 }, { "server_ib_port", UINT32_MAX }, { "gid_index", -2 }, { "gid_index", 256 },
		{ "gid_index", INT32_MIN },
		{ "server_gid_index", 256 }, { "mtu", 128 }, { "mtu", 1 }, { "mtu", 1500 }, { "mtu", 8192 },
		{ "sl", 16 }, { "sl", -2 },
		{ "traffic_class", 256 }, { "traffic_class", -2 },
		{ "queue_pairs", 0 }, { "queue_pairs", 1025 }, { "queue_pairs", UINT32_MAX }, { "batch", 0 },
		{ "batch", 16385 },
		{ "cq_moderation", 0 }, { "cq_moderation", UINT32_MAX }, { "inline_bytes", -2 },
		{ "inline_bytes", 65537 },
		{ "inline_bytes", INT64_MAX }, { "inline_bytes", INT64_MIN }, { "retry", 8 }, { "rnr_retry", 8 },
		{ "timeout_exponent", 32 },
	};

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
		refuse_choice(wrong[i].key, json_integer(wrong[i].value), -EINVAL);
}

static struct job with_memory(const char *backend, enum op op, const char *tx, const char *rx, bool bounce) {
	struct job job;

	job_defaults(&job);
	(void) copy_string(job.backend, sizeof(job.backend), backend);
	job.op = op;
	job.sizes[0] = 8;
	job.n_sizes = 1;
	job.iterations = job.outstanding = 1;
	job.timeout_ns = NSEC_PER_SEC;
	(void) copy_string(job.tx_memory, sizeof(job.tx_memory), tx);
	(void) copy_string(job.rx_memory, sizeof(job.rx_memory), rx);
	job.bounce = bounce;
	return job;
}

static void refuse_memory(const char *backend, enum op op, const char *tx, const char *rx, bool bounce,
			  const char *part) {
	struct job job = with_memory(backend, op, tx, rx, bounce);
	json_t *json;

	assert_int_equal(job_to_json(&job, &json), 0);
	refuse(json, -EINVAL);
	assert_int_equal(failure_code(), EXIT_USAGE);
	if (!strstr(failure_text(), part))
		fail_msg("'%s' does not say '%s'", failure_text(), part);
}

/* Which memory goes with which backend and operation. */
static void test_memory(void **state) {
	struct job job = with_memory("tcp", OP_SEND, "huge:1G", "cuda:3", true), read;
	json_t *json;

	(void) state;
	assert_int_equal(job_to_json(&job, &json), 0);
	assert_int_equal(job_from_json(json, &read), 0);
	assert_string_equal(read.tx_memory, "huge:1G");
	assert_string_equal(read.rx_memory, "cuda:3");
	assert_true(read.bounce);
	json_decref(json);

	refuse_memory("tcp", OP_SEND, "huge:4K", "host", false, "no such memory");
	refuse_memory("tcp", OP_SEND, "host", "gpu", false, "no such memory");
	refuse_memory("tcp", OP_SEND, "", "host", false, "no such memory");
	refuse_memory("tcp", OP_SEND, "cuda:0", "cuda:0", false, "--bounce");
	refuse_memory("tcp", OP_SEND, "host", "ze:1", false, "--bounce");
	refuse_memory("null", OP_SEND, "rocm:0", "host", true, "host memory and huge pages only");
	refuse_memory("tcp", OP_SEND, "huge:2M", "host", true, "host memory already");
	refuse_memory("verbs", OP_READ, "cuda:0", "host", true, "no process runs at the end of the");
	refuse_memory("verbs", OP_WRITE, "host", "cuda:0", true, "no process runs at the end of the");
	refuse_memory("verbs", OP_FETCH_ADD, "host", "cuda:0", true, "no process runs at the end of the");
	refuse_memory("verbs", OP_FETCH_ADD, "cuda:0", "host", false, "operands");
}

/* Combinations of choices that no device has, or in which a queue could never move. */
static void test_combinations_of_choices(void **state) {
	struct job job = chosen();
	json_t *json;

	(void) state;
	assert_int_equal(job_to_json(&job, &json), 0);
	assert_int_equal(job_from_json(json, &job), 0); /* right as it is; one change makes it wrong */
	json_decref(json);
	refuse_choice("outstanding", json_integer(15), -EINVAL); /* below batch and moderation */
	refuse_choice("cq_moderation", json_integer(65), -EINVAL);
	refuse_choice("batch", json_integer(65), -EINVAL);
	job.outstanding = JOB_OUTSTANDING_MAX;
	job.queue_pairs = 16; /* as many messages as have a place */
	assert_int_equal(job_to_json(&job, &json), 0);
	assert_int_equal(job_from_json(json, &job), 0);
	assert_int_equal(json_object_set_new(json, "queue_pairs", json_integer(17)), 0);
	refuse(json, -EINVAL);
	refuse_choice("kind", json_string("latency"), -EINVAL);
	refuse_choice("op", json_string("read"), -EINVAL); /* an SRQ without receives */
	refuse_choice("op", json_string("write"), -EINVAL);
	refuse_choice("connection", json_string("ud"), -EINVAL);
	refuse_choice("connection", json_string("uc"), -EINVAL); /* with retries */
}

static void test_operations_of_connections(void **state) {
	(void) state;
	for (int connection = 0; connection < CONNECTION_MAX; connection++)
		for (int op = 0; op <= OP_COMPARE_SWAP; op++) { /* verbs has none of the atomics behind it */
			bool send = op == OP_SEND || op == OP_SEND_IMM, write = op == OP_WRITE || op == OP_WRITE_IMM;
			bool has = connection == CONNECTION_RC || send || (write && connection == CONNECTION_UC);
			struct job job = sample();

			(void) copy_string(job.backend, sizeof(job.backend), "verbs");
			job.definition = DEFINITION_AUTO;
			job.op = (enum op) op;
			job.verbs.connection = (enum connection) connection;
			job.sizes[0] = op_is_atomic(job.op) ? 8 : 4096; /* verbs' atomics work on one word */
			job.n_sizes = 1;
			failure_reset();
			assert_int_equal(job_validate(&job), has ? 0 : -EINVAL);
			assert_int_equal(failure_text()[0] == '\0', has);
			if (connection == CONNECTION_UD && has) {
				job.sizes[0] = 4104; /* above every MTU */
				assert_int_equal(job_validate(&job), -EINVAL);
				job.sizes[0] = 1024;
				job.verbs.mtu = 512;
				assert_int_equal(job_validate(&job), -EINVAL);
				job.verbs.mtu = 1024;
				assert_int_equal(job_validate(&job), 0);
			}
		}
}

/* The last byte of a write may be seen before the others: polling memory for it would prove nothing. */
static void test_relaxed_ordering(void **state) {
	struct job job = sample();

	(void) state;
	(void) copy_string(job.backend, sizeof(job.backend), "verbs");
	assert_false(job_relaxed_ordering(&job));
	job.verbs.relaxed_ordering = RELAXED_ORDERING_ON;
	assert_int_equal(job_validate(&job), 0);
	job.definition = DEFINITION_HALF_ROUND_TRIP;
	assert_int_equal(job_validate(&job), -EINVAL);
	job.op = OP_WRITE_IMM;
	assert_int_equal(job_validate(&job), 0);
	/* Nobody can poll a GPU's; with --bounce it is the host's that is registered. */
	job.definition = DEFINITION_AUTO;
	job.verbs.relaxed_ordering = RELAXED_ORDERING_AUTO;
	(void) copy_string(job.rx_memory, sizeof(job.rx_memory), "cuda:near");
	assert_true(job_relaxed_ordering(&job));
	job.bounce = true;
	assert_false(job_relaxed_ordering(&job));
	/* Nobody polls memory there. */
	for (int kind = KIND_BANDWIDTH; kind < KIND_MAX; kind++) {
		job.kind = (enum kind) kind;
		job.verbs.relaxed_ordering = RELAXED_ORDERING_AUTO;
		assert_true(job_relaxed_ordering(&job));
		job.verbs.relaxed_ordering = RELAXED_ORDERING_OFF;
		assert_false(job_relaxed_ordering(&job));
	}
}

/* A message that may be lost must have room for its name, or no corruption could be told from a loss. */
static void test_verify_of_what_may_be_lost(void **state) {
	struct job job = sample();

	(void) state;
	(void) copy_string(job.backend, sizeof(job.backend), "verbs");
	job.op = OP_SEND;
	job.definition = DEFINITION_AUTO;
	job.n_sizes = 2;
	job.sizes[0] = 64;
	for (int connection = 0; connection < CONNECTION_MAX; connection++) {
		job.verbs.connection = (enum connection) connection;
		job.sizes[1] = 7;
		job.verify = true;
		assert_int_equal(job_validate(&job), connection == CONNECTION_RC ? 0 : -EINVAL);
		job.sizes[1] = 8;
		assert_int_equal(job_validate(&job), 0);
		job.sizes[1] = 7;
		job.verify = false;
		assert_int_equal(job_validate(&job), 0);
	}
}

static void test_inline_needs_payload_to_send(void **state) {
	(void) state;
	for (int op = 0; op <= OP_COMPARE_SWAP; op++) {
		bool sends = op != OP_READ && op != OP_FETCH_ADD && op != OP_COMPARE_SWAP;
		struct job job = sample();

		(void) copy_string(job.backend, sizeof(job.backend), "verbs");
		job.op = (enum op) op;
		job.definition = DEFINITION_AUTO;
		job.n_sizes = 1;
		job.sizes[0] = 8;
		job.verbs.inline_bytes = 64;
		assert_int_equal(job_validate(&job), sends ? 0 : -EINVAL);
		job.verbs.inline_bytes = 0; /* none: what they have */
		assert_int_equal(job_validate(&job), 0);
	}
}

/* Else a plan is made of a job that both ends refuse once they have met. */
static void test_a_footprint_has_room_for_all_that_is_verified(void **state) {
	struct job job = sample();

	(void) state;
	(void) copy_string(job.backend, sizeof(job.backend), "ofi");
	job.kind = KIND_BANDWIDTH;
	job.definition = DEFINITION_AUTO;
	job.report_all = false;
	job.n_sizes = 1;
	job.sizes[0] = 1024;
	job.outstanding = 64;
	job.footprint = 64 << 10;
	assert_int_equal(job_validate(&job), 0);
	job.outstanding = 128;
	failure_reset();
	assert_int_equal(job_validate(&job), -EINVAL);
	assert_int_equal(failure_code(), EXIT_USAGE);
	assert_non_null(strstr(failure_text(), "--footprint 65536 with --verify has 64 places of 1024 bytes, and 128"));
	failure_reset();
	job.verify = false;
	assert_int_equal(job_validate(&job), 0);
	/* one under way, and the answer to it */
	job.verify = true;
	job.outstanding = 1;
	job.footprint = 2048;
	assert_int_equal(job_validate(&job), 0);
	job.footprint = 2047;
	assert_int_equal(job_validate(&job), -EINVAL);
	failure_reset();
}

static bool takes(const char *backend, const char *key, enum kind kind) {
	struct job job = { .kind = kind };

	for (size_t i = 0; i < job_members_size; i++)
		if (job_members[i].key && streq(job_members[i].key, key))
			return member_fits(&job_members[i], &job, backend_facts_of(backend));
	fail_msg("no member %s", key);
	return false;
}

static void test_who_takes_a_member(void **state) {
	(void) state;
	assert_true(takes("verbs", "srq", KIND_BANDWIDTH));
	assert_false(takes("cxi", "srq", KIND_BANDWIDTH));
	assert_true(takes("cxi", "svc_id", KIND_LATENCY));
	assert_false(takes("ofi", "svc_id", KIND_LATENCY));
	assert_true(takes("ofi", "fabric_class", KIND_LATENCY));
	assert_false(takes("verbs", "fabric_class", KIND_LATENCY));
	assert_true(takes("ofi", "batch", KIND_BANDWIDTH));
	/* with lanes, everybody has several queue pairs */
	assert_false(takes("tcp", "queue_pairs", KIND_BANDWIDTH));
	assert_true(takes("tcp", "queue_pairs", KIND_TRANSFER));
	assert_true(takes("tcp", "queue_pairs", KIND_RATE));
	assert_false(takes("tcp", "cq_moderation", KIND_TRANSFER));
	assert_true(takes("tcp", "cq_moderation", KIND_RATE));
	assert_true(takes("null", "op", KIND_LATENCY));
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
		cmocka_unit_test(test_choices_of_other_backends),
		cmocka_unit_test(test_ranges_of_choices),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_combinations_of_choices),
		cmocka_unit_test(test_operations_of_connections),
		cmocka_unit_test(test_relaxed_ordering),
		cmocka_unit_test(test_verify_of_what_may_be_lost),
		cmocka_unit_test(test_inline_needs_payload_to_send),
		cmocka_unit_test(test_a_footprint_has_room_for_all_that_is_verified),
		cmocka_unit_test(test_who_takes_a_member),
	};

	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
