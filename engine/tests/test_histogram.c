/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: the histogram counts where HdrHistogram counts, keeps exact sums, and reads only what is an encoding.
 * histogram_oracle.py compares the same code with the reference implementation.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/histogram.h"

static int setup(void **state) {
	struct histogram *h;

	assert_int_equal(histogram_new(&h), 0);
	*state = h;
	return 0;
}

static int teardown(void **state) {
	*state = histogram_free(*state);
	return 0;
}

static void test_empty(void **state) {
	struct histogram *h = *state;

	assert_true(h->count == 0 && h->min == UINT64_MAX && h->max == 0);
	assert_true(histogram_mean(h) == 0 && histogram_stddev(h) == 0);
	assert_int_equal(histogram_quantile(h, 0.5), 0);
	assert_false(histogram_supports(h, 0.5));
	assert_null(histogram_free(NULL));
}

/* Every place holds the values between its ends, and the ends of neighbours touch. */
static void test_layout(void **state) {
	uint64_t next = 0;

	(void) state;
	for (size_t i = 0; i < HISTOGRAM_COUNTS; i++) {
		uint64_t low = histogram_lowest_at(i), high = histogram_highest_at(i);

		assert_true(low == next && high >= low);
		assert_true((high - low) * 1000 <= low); /* three significant digits */
		if (low > HISTOGRAM_HIGHEST)
			break;
		assert_int_equal(histogram_index(low), i);
		if (high <= HISTOGRAM_HIGHEST)
			assert_int_equal(histogram_index(high), i);
		next = high + 1;
	}
	assert_true(next > HISTOGRAM_HIGHEST);
	assert_true(histogram_index(UINT64_MAX) == histogram_index(HISTOGRAM_HIGHEST));
	assert_true(histogram_index(UINT64_MAX) < HISTOGRAM_COUNTS);
}

static void test_exact_sums(void **state) {
	struct histogram *h = *state;

	for (uint64_t v = 1; v <= 1000; v++)
		histogram_record(h, v);
	assert_int_equal(h->count, 1000);
	assert_int_equal(h->min, 1);
	assert_int_equal(h->max, 1000);
	assert_true(histogram_mean(h) == 500.5);
	assert_true(fabs(histogram_stddev(h) - sqrt(1000.0 * 1001 / 12)) < 1e-9);
	assert_int_equal(histogram_quantile(h, 0.5), 500);
	assert_int_equal(histogram_quantile(h, 0.99), 990);
	assert_int_equal(histogram_quantile(h, 1), 1000);
	assert_int_equal(histogram_quantile(h, 1e-9), 1);
	histogram_reset(h);
	assert_true(h->count == 0 && h->counts[1] == 0 && h->min == UINT64_MAX);
}

/* The textbook formula in floating point answers 0 or nonsense here: mean / deviation is 10^12. */
static void test_deviation_of_close_values(void **state) {
	struct histogram *h = *state;
	const uint64_t base = UINT64_C(3000000000000);

	for (int i = 0; i < 1000; i++)
		histogram_record(h, base + (uint64_t) (i % 2) * 2);
	assert_true(histogram_mean(h) == (double) (base + 1));
	assert_true(fabs(histogram_stddev(h) - sqrt(1000.0 / 999)) < 1e-9);
}

static void test_quantile_never_above_maximum(void **state) {
	struct histogram *h = *state;

	histogram_record(h, 1000001);
	assert_true(histogram_highest_at(histogram_index(1000001)) > 1000001);
	assert_int_equal(histogram_quantile(h, 0.5), 1000001);
	histogram_record(h, UINT64_MAX / 2);
	assert_true(h->max == UINT64_MAX / 2); /* beyond the hour: counted in the last place, kept exactly */
	assert_true(histogram_quantile(h, 1) >= HISTOGRAM_HIGHEST);
}

static void test_supports(void **state) {
	static const struct {
		uint64_t count;
		double p;
		bool supported;
	} cases[] = {
		{ 19, 0.5, false },     { 20, 0.5, true },       { 999, 0.99, false },       { 1000, 0.99, true },
		{ 9999, 0.999, false }, { 10000, 0.999, true },  { 99999, 0.9999, false },   { 100000, 0.9999, true },
		{ 199, 0.95, false },   { 200, 0.95, true },     { 1000000, 0.99999, true }, { 99, 0.9, false },
	};
	struct histogram *h = *state;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		h->count = cases[i].count;
		assert_true(histogram_supports(h, cases[i].p) == cases[i].supported);
	}
}

static void test_add(void **state) {
	_cleanup_(histogram_freep) struct histogram *other = NULL;
	struct histogram *h = *state;

	assert_int_equal(histogram_new(&other), 0);
	histogram_record(h, 10);
	histogram_add(h, other); /* empty: its minimum must not win */
	assert_true(h->count == 1 && h->min == 10 && h->max == 10);
	histogram_record(other, 5);
	histogram_record(other, 5000000);
	histogram_add(h, other);
	assert_true(h->count == 3 && h->min == 5 && h->max == 5000000);
	assert_true(h->sum == 5000015);
}

static void test_round_trip(void **state) {
	_cleanup_(histogram_freep) struct histogram *back = NULL;
	_cleanup_free_ char *text = NULL, *again = NULL;
	struct histogram *h = *state;
	uint64_t x = 88172645463325252; /* xorshift64: Marsaglia's own seed */

	for (int i = 0; i < 100000; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		histogram_record(h, x >> (x % 60));
	}
	h->counts[7] += UINT64_C(1) << 40; /* a count of many bytes */
	h->count += UINT64_C(1) << 40;
	assert_int_equal(histogram_encode(h, &text), 0);
	assert_memory_equal(text, "HISTFAAA", 8);
	assert_int_equal(histogram_decode(text, &back), 0);
	assert_true(back->count == h->count);
	assert_memory_equal(back->counts, h->counts, sizeof(h->counts));
	assert_true(back->min <= h->min && back->max >= MIN(h->max, HISTOGRAM_HIGHEST));
	assert_int_equal(histogram_encode(back, &again), 0);
	assert_string_equal(text, again);
}

/* Texts that are added one after the other make what their histograms make together. */
static void test_decode_adds(void **state) {
	_cleanup_(histogram_freep) struct histogram *total = NULL, *both = NULL;
	_cleanup_free_ char *text = NULL, *one = NULL, *other = NULL;
	struct histogram *h = *state;

	assert_int_equal(histogram_new(&total), 0);
	assert_int_equal(histogram_new(&both), 0);
	for (uint64_t value = 1; value < 1000000; value = value * 3 + 1) {
		histogram_record(h, value);
		assert_int_equal(histogram_encode(h, &text), 0);
		assert_int_equal(histogram_decode_add(text, total), 0);
		histogram_add(both, h);
		free(text);
		text = NULL;
	}
	assert_true(total->count == both->count);
	assert_memory_equal(total->counts, both->counts, sizeof(both->counts));
	assert_int_equal(histogram_encode(total, &one), 0);
	assert_int_equal(histogram_encode(both, &other), 0);
	assert_string_equal(one, other);
}

static void test_empty_round_trip(void **state) {
	_cleanup_(histogram_freep) struct histogram *back = NULL;
	_cleanup_free_ char *text = NULL;

	assert_int_equal(histogram_encode(*state, &text), 0);
	assert_int_equal(histogram_decode(text, &back), 0);
	assert_true(back->count == 0 && back->min == UINT64_MAX);
}

/* Every cut and every changed character of a real text is refused or still a sound histogram; never a crash. */
static void test_damaged(void **state) {
	static const char *const bad[] = {
		"", "=", "HIST", "HISTFAAA", "HISTFAAAAAA=", "not base64 at all", "HISTFAAAABB42g==", "AAAAAAAA",
		"====",
	};
	struct histogram *h = *state, *back = NULL;
	_cleanup_free_ char *text = NULL;
	size_t n;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(histogram_decode(bad[i], &back), -EBADMSG);
	for (uint64_t v = 1; v < 100; v++)
		histogram_record(h, v * v * v);
	assert_int_equal(histogram_encode(h, &text), 0);
	n = strlen(text);
	for (size_t i = 0; i < n; i++) {
		char kept = text[i];

		text[i] = 0;
		assert_int_equal(histogram_decode(text, &back), -EBADMSG);
		text[i] = kept == 'A' ? 'B' : 'A';
		if (histogram_decode(text, &back) == 0)
			back = histogram_free(back);
		text[i] = kept;
	}
	assert_null(back);
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test(test_layout),
		cmocka_unit_test_setup_teardown(test_exact_sums, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deviation_of_close_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_quantile_never_above_maximum, setup, teardown),
		cmocka_unit_test_setup_teardown(test_supports, setup, teardown),
		cmocka_unit_test_setup_teardown(test_add, setup, teardown),
		cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_decode_adds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_empty_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
	};

	return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
