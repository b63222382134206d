/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: numbers with units are read whole or refused, and nothing is written on failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "job/parse.h"

static void test_u64(void **state) {
	static const char *const bad[] = { "", " ", "-1", "+1", " 1", "1 ", "1x", "0x10", "1.5", "1e3" };
	uint64_t v = 77;

	(void) state;
	assert_int_equal(parse_u64("0", &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(parse_u64("18446744073709551615", &v), 0);
	assert_true(v == UINT64_MAX);
	v = 77;
	assert_int_equal(parse_u64("18446744073709551616", &v), -ERANGE);
	assert_int_equal(parse_u64("99999999999999999999999", &v), -ERANGE);
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(parse_u64(bad[i], &v), -EINVAL);
	assert_int_equal(v, 77);
}

static void test_decimal(void **state) {
	static const char *const bad[] = { "", "-1", "+1", ".5", "5.", "1e3", "inf", "nan", "0x1p3", "1,5", " 1" };
	double v = 77;

	(void) state;
	assert_int_equal(parse_decimal("12.5", &v), 0);
	assert_true(v == 12.5);
	assert_int_equal(parse_decimal("3", &v), 0);
	assert_true(v == 3);
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(parse_decimal(bad[i], &v), -EINVAL);
	assert_int_equal(parse_decimal("0", &v), -ERANGE);
	assert_int_equal(parse_decimal("0.0", &v), -ERANGE);
	assert_true(v == 3);
}

static void test_size(void **state) {
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{ "1", 1 },          { "64K", 65536 },         { "64KiB", 65536 },
		{ "1M", 1 << 20 },   { "3MiB", 3 << 20 },      { "1G", 1 << 30 },
		{ "2GiB", UINT64_C(2) << 30 },                 { "4294967295", UINT32_MAX },
	};
	static const char *const bad[] = { "", "K", "1k", "1KB", "1Kb", "1.5K", "-1K", "1 K", "1T", "1KiBs" };
	uint64_t v = 77;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(good); i++) {
		assert_int_equal(parse_size(good[i].text, &v), 0);
		assert_true(v == good[i].value);
	}
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(parse_size(bad[i], &v), -EINVAL);
	assert_int_equal(parse_size("17179869184G", &v), -ERANGE);
}

static void expect_sizes(const char *text, const uint64_t *sizes, size_t n) {
	uint64_t ret[JOB_SIZES_MAX];
	size_t ret_n;

	assert_int_equal(parse_sizes(text, ret, &ret_n), 0);
	assert_int_equal(ret_n, n);
	assert_memory_equal(ret, sizes, n * sizeof(*sizes));
}

static void test_sizes(void **state) {
	static const char *const range[] = { "0", "0:8", "4G", "1:4G", "8:64:0" };
	static const char *const form[] = { "", ":", "8:", ":8", "8::64", "8:64:", "8:64:8:8", "8-64", "8,64" };
	uint64_t ret[JOB_SIZES_MAX];
	size_t n = 77;

	(void) state;
	expect_sizes("8", (const uint64_t[]){ 8 }, 1);
	expect_sizes("8:8", (const uint64_t[]){ 8 }, 1);
	expect_sizes("8:64", (const uint64_t[]){ 8, 16, 32, 64 }, 4);
	expect_sizes("8:100", (const uint64_t[]){ 8, 16, 32, 64 }, 4);
	expect_sizes("6:30", (const uint64_t[]){ 6, 12, 24 }, 3);
	expect_sizes("1K:4K:1K", (const uint64_t[]){ 1024, 2048, 3072, 4096 }, 4);
	expect_sizes("1:10:4", (const uint64_t[]){ 1, 5, 9 }, 3);
	assert_int_equal(parse_sizes("1:4294967295", ret, &n), 0);
	assert_int_equal(n, 32);
	assert_int_equal(parse_sizes("1:128:1", ret, &n), 0);
	assert_int_equal(n, JOB_SIZES_MAX);
	assert_int_equal(parse_sizes("1:129:1", ret, &n), -E2BIG);
	for (size_t i = 0; i < ELEMENTSOF(range); i++)
		assert_int_equal(parse_sizes(range[i], ret, &n), -ERANGE);
	assert_int_equal(parse_sizes("8:4", ret, &n), -EDOM);
	for (size_t i = 0; i < ELEMENTSOF(form); i++)
		assert_int_equal(parse_sizes(form[i], ret, &n), -EINVAL);
	assert_int_equal(n, JOB_SIZES_MAX);
}

static void test_duration(void **state) {
	static const struct {
		const char *text;
		uint64_t bare, ns;
	} good[] = {
		{ "10ns", 0, 10 },
		{ "10us", 0, 10000 },
		{ "500ms", 0, 500 * NSEC_PER_MSEC },
		{ "10s", 0, 10 * NSEC_PER_SEC },
		{ "1.5s", 0, 1500 * NSEC_PER_MSEC },
		{ "0.001ms", 0, 1000 },
		{ "5m", 0, 300 * NSEC_PER_SEC },
		{ "1h", 0, 3600 * NSEC_PER_SEC },
		{ "3", NSEC_PER_SEC, 3 * NSEC_PER_SEC },
		{ "3", NSEC_PER_USEC, 3000 },
		{ "0.5", NSEC_PER_SEC, 500 * NSEC_PER_MSEC },
		{ "9007199254740993ns", 0, UINT64_C(9007199254740993) }, /* 2^53 + 1: no double on the way */
	};
	static const char *const bad[] = { "", "s", "-1s", "1 s", "1sec", "1S", "1.s", ".5s", "1e3s", "10", "1s1ms" };
	uint64_t ns = 77;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(good); i++) {
		assert_int_equal(parse_duration(good[i].text, good[i].bare, &ns), 0);
		assert_true(ns == good[i].ns);
	}
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(parse_duration(bad[i], 0, &ns), -EINVAL);
	assert_int_equal(parse_duration("18446744073709551615s", 0, &ns), -ERANGE);
	assert_int_equal(parse_duration("99999999999999999999s", 0, &ns), -ERANGE);
}

static void test_rate(void **state) {
	static const struct {
		const char *text;
		enum rate_unit unit;
		double value;
	} good[] = {
		{ "1000msg/s", RATE_MESSAGES, 1000 },     { "10Kmsg/s", RATE_MESSAGES, 1e4 },
		{ "2Mmessages/s", RATE_MESSAGES, 2e6 },   { "5Gb/s", RATE_BITS, 5e9 },
		{ "100Mb/s", RATE_BITS, 1e8 },            { "2.5Gbit/s", RATE_BITS, 2.5e9 },
	};
	static const char *const bad[] = { "", "1000", "Gb/s", "5G", "5GB/s", "5gb/s", "-5Gb/s", "5 Gb/s", "5Gb",
					   "5Gb/sx" };
	enum rate_unit unit = RATE_NONE;
	double value = 77;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(parse_rate(bad[i], &unit, &value), -EINVAL);
	assert_int_equal(parse_rate("0Gb/s", &unit, &value), -ERANGE);
	assert_int_equal(unit, RATE_NONE);
	for (size_t i = 0; i < ELEMENTSOF(good); i++) {
		assert_int_equal(parse_rate(good[i].text, &unit, &value), 0);
		assert_int_equal(unit, good[i].unit);
		assert_true(value == good[i].value);
	}
}

static void test_quantiles(void **state) {
	double q[3];
	size_t n = 77;

	(void) state;
	assert_int_equal(parse_quantiles("0.5,0.99,1", q, 3, &n), 0);
	assert_int_equal(n, 3);
	assert_true(q[0] == 0.5 && q[1] == 0.99 && q[2] == 1);
	assert_int_equal(parse_quantiles("0.1,0.2,0.3,0.4", q, 3, &n), -E2BIG);
	assert_int_equal(parse_quantiles("0", q, 3, &n), -ERANGE);
	assert_int_equal(parse_quantiles("1.01", q, 3, &n), -ERANGE);
	assert_int_equal(parse_quantiles("99%", q, 3, &n), -EINVAL);
	assert_int_equal(parse_quantiles("0.5,", q, 3, &n), -EINVAL);
	assert_int_equal(parse_quantiles("", q, 3, &n), -EINVAL);
	assert_int_equal(n, 3);
}

static void refuse_batches(const char *text, int error) {
	uint32_t batches[JOB_BATCHES_MAX];
	size_t n = 77;

	assert_int_equal(parse_batches(text, batches, &n), error);
	assert_int_equal(n, 77);
}

static void test_batches(void **state) {
	uint32_t batches[JOB_BATCHES_MAX];
	size_t n;

	(void) state;
	assert_int_equal(parse_batches("128", batches, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(batches[0], 128);
	assert_int_equal(parse_batches("1:32768", batches, &n), 0);
	assert_int_equal(n, 16);
	assert_int_equal(batches[15], 32768);
	assert_int_equal(parse_batches("3:20", batches, &n), 0);
	assert_int_equal(n, 3); /* 3, 6, 12 */
	assert_int_equal(batches[2], 12);
	refuse_batches("0", -ERANGE);
	refuse_batches("32769", -ERANGE);
	refuse_batches("2:1", -EDOM);
	refuse_batches("", -EINVAL);
	refuse_batches("1K", -EINVAL);
	refuse_batches("1:", -EINVAL);
	refuse_batches("1:2:3", -EINVAL);
	refuse_batches("-1", -EINVAL);
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),      cmocka_unit_test(test_decimal), cmocka_unit_test(test_size),
		cmocka_unit_test(test_sizes),    cmocka_unit_test(test_duration), cmocka_unit_test(test_rate),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_batches),
	};

	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
