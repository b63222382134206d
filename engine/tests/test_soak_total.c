/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: the intervals of a soak add up to what one run over the whole time would have said,
 * and what one of them lacks the whole lacks, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "stats/figures.h"
#include "output/result.h"
#include "stats/soak_total.h"

enum { INTERVALS = 60, SAMPLES = 2000 };

static struct soak_total total;
static struct job job;

static int begin(void **state) {
	(void) state;
	job = (struct job) { .kind = KIND_LATENCY };
	return soak_total_new(&total);
}

static int done(void **state) {
	(void) state;
	soak_total_done(&total);
	return 0;
}

/* Adds a line as a reader of the file gets it: as text. */
static int add(json_t *o) {
	char *text = record_text(o);
	json_t *line = json_loads(text, 0, NULL);
	int e = soak_total_add(&total, line);

	json_decref(line);
	json_decref(o);
	free(text);
	return e;
}

static json_t *interval(double start, double end) {
	return json_pack("{s:s, s:f, s:f, s:f, s:I, s:I, s:{s:f, s:f}, s:{s:I, s:I, s:I, s:I}, s:{s:I, s:f}}", "kind",
			 "interval", "start_s", start, "end_s", end, "elapsed_s", end - start, "messages",
			 (json_int_t) SAMPLES, "bytes", (json_int_t) 8 * SAMPLES, "cpu", "client_s", 0.5, "server_s",
			 0.25, "path", "claimed_bytes", (json_int_t) 16, "client_sent_bytes", (json_int_t) 8,
			 "client_received_bytes", (json_int_t) 8, "lost_bytes", (json_int_t) 0, "stalls", "count",
			 (json_int_t) 1, "total_s", 0.05);
}

static json_t *whole(void) {
	return soak_total_record(&total, &job, json_object(), json_null());
}

static double at(const json_t *o, const char *a, const char *b) {
	return json_number_value(json_object_get(json_object_get(o, a), b));
}

/* A log-normal-like tail, by a generator whose every number is known: no test of chance. */
static uint64_t sample(uint64_t *seed) {
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return 1000 + (*seed >> 40) % 5000 + (*seed % 1000 == 0 ? (*seed >> 33) % 100000000 : 0);
}

static void test_intervals_merge_to_the_whole(void **state) {
	static const char *const keys[] = { "min", "max", "mean", "stddev", "p50", "p90", "p95", "p99", "p99_9",
					    "p99_99" };
	struct histogram *all, *one;
	uint64_t seed = 1;
	json_t *expected, *record;

	(void) state;
	assert_int_equal(histogram_new(&all) | histogram_new(&one), 0);
	for (int i = 0; i < INTERVALS; i++) {
		json_t *line = interval(i, i + 1);
		char *text;

		histogram_reset(one);
		for (int k = 0; k < SAMPLES; k++)
			histogram_record(one, sample(&seed));
		histogram_add(all, one);
		assert_int_equal(histogram_encode(one, &text), 0);
		(void) json_object_set_new(line, "latency_us", latency_json(one, true));
		(void) json_object_set_new(line, "histogram",
					   json_pack("{s:s, s:s}", "unit", "ns_round_trip", "data", text));
		free(text);
		assert_int_equal(add(line), 0);
	}
	expected = latency_json(all, true);
	record = whole();
	assert_int_equal(at(record, "latency_us", "count"), INTERVALS * SAMPLES);
	for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
		double ours = at(record, "latency_us", keys[i]),
			theirs = json_number_value(json_object_get(expected, keys[i]));

		assert_true(theirs > 0 && fabs(ours / theirs - 1) < 1e-6);
	}
	json_decref(expected);
	json_decref(record);
	histogram_free(all);
	histogram_free(one);
}

static void test_sums(void **state) {
	json_t *record;

	(void) state;
	job.kind = KIND_BANDWIDTH;
	for (int i = 0; i < 3; i++) {
		json_t *line = interval(i, i + 0.5);

		(void) json_object_set_new(line, "bandwidth",
					   json_pack("{s:f, s:o}", "peak_gbit_s", 3.0 + i, "min_interval_gbit_s",
						     i == 1 ? json_null() : json_real(2.0 + i)));
		assert_int_equal(add(line), 0);
	}
	record = whole();
	assert_true(fabs(at(record, "bandwidth", "gbit_s") - 3 * 8 * SAMPLES * 8e-9 / 1.5) < 1e-12);
	assert_true(at(record, "bandwidth", "peak_gbit_s") == 5 && at(record, "bandwidth", "min_interval_gbit_s") == 2);
	assert_true(at(record, "cpu", "client_s") == 1.5 && at(record, "cpu", "server_s") == 0.75);
	assert_true(at(record, "path", "claimed_bytes") == 48);
	assert_true(total.stalls == 3 && fabs(total.stall_s - 0.15) < 1e-9 && total.end_s == 2.5);
	json_decref(record);
}

/* An end that was lost took its figures with it. */
static void test_what_one_interval_lacks_the_whole_lacks(void **state) {
	json_t *line = interval(1, 2), *record;

	(void) state;
	assert_int_equal(add(interval(0, 1)), 0);
	(void) json_object_set_new(json_object_get(line, "cpu"), "server_s", json_null());
	(void) json_object_set_new(line, "path", json_null());
	assert_int_equal(add(line), 0);
	record = whole();
	assert_true(at(record, "cpu", "client_s") == 1);
	assert_true(json_is_null(json_object_get(json_object_get(record, "cpu"), "server_s")));
	assert_true(json_is_null(json_object_get(record, "path")));
	assert_true(json_is_null(json_object_get(record, "integrity")) && json_is_null(json_object_get(record, "tcp")));
	json_decref(record);
}

static void test_gaps_and_stalls(void **state) {
	json_t *record;

	(void) state;
	assert_int_equal(add(interval(0, 10)), 0);
	assert_int_equal(add(json_pack("{s:s, s:f, s:f, s:s}", "kind", "stall", "start_s", 2.0, "end_s", 2.25,
				       "started", "then")), 0);
	assert_int_equal(add(json_pack("{s:s, s:f, s:f, s:s}", "kind", "stall", "start_s", 3.0, "end_s", 3.125,
				       "started", "later")), 0);
	assert_int_equal(add(json_pack("{s:s, s:f, s:f}", "kind", "gap", "start_s", 10.0, "end_s", 15.5)), 0);
	record = whole();
	assert_true(total.gaps == 1 && total.gap_s == 5.5 && total.end_s == 15.5);
	assert_true(at(record, "stall", "longest_s") == 0.25 && at(record, "stall", "start_s") == 2);
	assert_string_equal(json_string_value(json_object_get(json_object_get(record, "stall"), "began")), "then");
	json_decref(record);
}

/* Each socket counts from its own beginning, and says so with each interval. */
static void test_retransmissions_of_several_connections(void **state) {
	static const int counts[] = { 3, 7, 2 };
	json_t *record;

	(void) state;
	for (int i = 0; i < 3; i++) {
		json_t *line = interval(i, i + 1);

		if (i != 1)
			assert_int_equal(add(json_pack("{s:s, s:f, s:s}", "kind", "connection", "start_s", (double) i,
						       "started", "now")), 0);
		(void) json_object_set_new(line, "tcp", json_pack("{s:i}", "retransmissions", counts[i]));
		assert_int_equal(add(line), 0);
	}
	record = whole();
	assert_true(at(record, "tcp", "retransmissions") == 9);
	json_decref(record);
}

static void test_an_end_that_was_stopped_is_none(void **state) {
	(void) state;
	assert_int_equal(add(json_pack("{s:s, s:{s:b}}", "kind", "latency", "soak", "stopped", true)), 0);
	assert_false(total.over);
	assert_int_equal(add(json_pack("{s:s, s:{s:b}}", "kind", "latency", "soak", "stopped", false)), 0);
	assert_true(total.over);
}

/* One interval in 20 was behind, then three: the whole lacks its pace for a tenth of the time, and not for a moment. */
static void test_the_whole_lacks_its_pace_for_a_tenth_of_the_time(void **state) {
	(void) state;
	(void) add(json_pack("{s:s, s:{s:{s:f}}}", "kind", "connection", "params", "rate", "asked", 1.0));
	for (int i = 0; i < 23; i++) {
		json_t *line = interval(i, i + 1), *record;
		bool behind = i == 3 || i >= 20;

		(void) json_object_set_new(line, "rate", json_pack("{s:I, s:b}", "skipped", (json_int_t) behind,
								   "overloaded", behind));
		assert_int_equal(add(line), 0);
		if (i != 19 && i != 22)
			continue;
		record = whole();
		assert_true(json_is_true(json_object_get(json_object_get(json_object_get(record, "params"), "rate"),
							 "overloaded")) == (i == 22));
		json_decref(record);
	}
}

static void test_damage_is_refused(void **state) {
	json_t *line = interval(0, 1);

	(void) state;
	assert_int_equal(add(json_object()), -EBADMSG);
	(void) json_object_set_new(line, "latency_us", json_object());
	(void) json_object_set_new(line, "histogram", json_pack("{s:s, s:s}", "unit", "ns", "data", "HISTFAAA"));
	assert_int_equal(add(line), -EBADMSG);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_intervals_merge_to_the_whole, begin, done),
		cmocka_unit_test_setup_teardown(test_sums, begin, done),
		cmocka_unit_test_setup_teardown(test_what_one_interval_lacks_the_whole_lacks, begin, done),
		cmocka_unit_test_setup_teardown(test_gaps_and_stalls, begin, done),
		cmocka_unit_test_setup_teardown(test_retransmissions_of_several_connections, begin, done),
		cmocka_unit_test_setup_teardown(test_an_end_that_was_stopped_is_none, begin, done),
		cmocka_unit_test_setup_teardown(test_the_whole_lacks_its_pace_for_a_tenth_of_the_time, begin, done),
		cmocka_unit_test_setup_teardown(test_damage_is_refused, begin, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
