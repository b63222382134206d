/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: every byte of a payload counts: a flip anywhere, a neighbour's message,
 * a stale or shifted one are found and located.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/bad_byte.h"
#include "base/clock.h"

enum { LARGEST = 70 }; /* beyond eight words, with every remainder */

/* As many bytes as are asked for and no more: the sanitizer sees a read or write beyond. */
static uint8_t *fresh(uint64_t size, uint64_t sequence) {
	uint8_t *p = malloc(size);

	assert_non_null(p);
	pattern_fill(p, size, sequence);
	return p;
}

static void test_fill_and_check(void **state) {
	struct integrity i = { 0 };
	uint64_t bytes = 0;

	(void) state;
	for (uint64_t size = 1; size <= LARGEST; size++)
		for (uint64_t sequence = 0; sequence < 600; sequence += 7) {
			_cleanup_free_ uint8_t *p = fresh(size, sequence);

			assert_true(pattern_check(&i, p, size, sequence));
			bytes += size;
		}
	assert_true(i.checked_bytes == bytes);
	assert_true(i.bad_bytes == 0);
	assert_false(i.located);
}

static void test_every_flip_is_located(void **state) {
	(void) state;
	for (uint64_t size = 1; size <= LARGEST; size++)
		for (uint64_t at = 0; at < size; at++)
			for (unsigned bit = 0; bit < 8; bit++) {
				_cleanup_free_ uint8_t *p = fresh(size, 1234567);
				struct integrity i = { 0 };

				p[at] ^= (uint8_t) (1u << bit);
				assert_false(pattern_check(&i, p, size, 1234567));
				assert_true(i.bad_bytes == 1 && i.checked_bytes == size);
				assert_true(i.located && i.first.message == 1234567 && i.first.offset == at);
			}
}

/* Long messages are compared in strides: of two bad bytes in any of them, or between two, both count. */
static void test_flips_of_long_messages_are_located(void **state) {
	(void) state;
	for (uint64_t size = 250; size <= 1050; size += 37)
		for (uint64_t at = 0; at < size; at++) {
			_cleanup_free_ uint8_t *p = fresh(size, 77);
			struct integrity i = { 0 };

			assert_true(pattern_check(&i, p, size, 77));
			assert_int_equal(pattern_byte(at, 77), p[at]);
			p[at] ^= 1;
			p[size - 1] ^= 2;
			assert_false(pattern_check(&i, p, size, 77));
			assert_int_equal(i.bad_bytes, at == size - 1 ? 1 : 2);
			assert_true(i.located && i.first.offset == at && i.checked_bytes == 2 * size);
		}
}

static void test_another_message_does_not_pass(void **state) {
	(void) state;
	for (uint64_t size = 1; size <= LARGEST; size++)
		/* One byte carries the number modulo 256: a message is told from the 255 next to it. */
		for (uint64_t other = 1; other < 256; other++) {
			_cleanup_free_ uint8_t *p = fresh(size, 1000 + other);
			struct integrity i = { 0 };

			assert_false(pattern_check(&i, p, size, 1000));
		}
}

static void test_most_bytes_of_another_message_differ(void **state) {
	_cleanup_free_ uint8_t *p = fresh(4096, 42);
	struct integrity i = { 0 };

	(void) state;
	/*
	 * Neighbours differ nearly everywhere (1 of 256 bytes agrees by chance),
	 * so that no shift or partial copy passes.
	 */
	assert_false(pattern_check(&i, p, 4096, 43));
	assert_true(i.bad_bytes > 4096 * 9 / 10);
	i = (struct integrity) { 0 };
	memmove(p, p + 8, 4096 - 8);
	assert_false(pattern_check(&i, p, 4096, 42));
	assert_true(i.bad_bytes > 4096 * 9 / 10);
}

static void test_zeros_do_not_pass(void **state) {
	_cleanup_free_ uint8_t *p = calloc(1, 4096);
	struct integrity i = { 0 };

	(void) state;
	assert_non_null(p);
	assert_false(pattern_check(&i, p, 4096, 0));
	assert_true(i.bad_bytes > 4000); /* the number 0 itself is zeros: 8 bytes */
}

static void test_poison(void **state) {
	(void) state;
	for (uint64_t size = 1; size <= LARGEST; size++)
		for (uint64_t sequence = 0; sequence < 300; sequence++) {
			_cleanup_free_ uint8_t *p = fresh(size, sequence);
			struct integrity i = { 0 };

			pattern_poison(p, size);
			assert_false(pattern_check(&i, p, size, sequence));
			assert_true(i.bad_bytes == size); /* all of them */
			/* Nor does it pass for the message that is next in this slot, of one, two or 64. */
			assert_false(pattern_check(&i, p, size, sequence + 2));
			assert_false(pattern_check(&i, p, size, sequence + 64));
			pattern_poison(p, size);
			for (int turn = 0; turn < 2; turn++) {
				pattern_fill_poison(p, size, sequence);
				for (uint64_t k = 0; k < size; k++)
					assert_int_equal(p[k] ^ pattern_byte(k, sequence), UINT8_MAX);
			}
		}
}

static void test_a_message_begins_with_its_number(void **state) {
	(void) state;
	for (uint64_t size = 1; size <= LARGEST; size++) {
		_cleanup_free_ uint8_t *p = fresh(size, 300);

		assert_true(pattern_begins(p, size, 300));
		assert_false(pattern_begins(p, size, 301));
		/* One byte tells 256 numbers apart, two tell all that are under way. */
		assert_int_equal(pattern_begins(p, size, 300 + 256), size == 1);
		assert_int_equal(pattern_begins(p, size, 300 + 65536), size <= 2);
		for (uint64_t i = 0; i < size; i++)
			assert_int_equal(pattern_byte(i, 300), p[i]);
	}
}

static void test_what_never_came_is_not_corrupted(void **state) {
	enum { SIZE = 40 };
	uint8_t p[SIZE];

	(void) state;
	pattern_fill(p, SIZE, 7);
	pattern_poison(p, SIZE);
	assert_true(pattern_is_stale(p, SIZE, 71, 7));
	/* Its first packet came, the others did not. */
	for (uint64_t i = 0; i < 16; i++)
		p[i] = pattern_byte(i, 71);
	assert_true(pattern_is_stale(p, SIZE, 71, 7));
	for (uint64_t i = 0; i < SIZE; i++) {
		p[i] ^= 4;
		assert_false(pattern_is_stale(p, SIZE, 71, 7));
		p[i] ^= 4;
	}
	assert_false(pattern_is_stale(p, SIZE, 71, 8));
}

static void test_words(void **state) {
	uint64_t w = 7;
	struct integrity i = { 0 };

	(void) state;
	assert_true(word_check(&i, (uint8_t *) &w, 7, 8, 70));
	assert_true(i.checked_bytes == 8 && i.bad_bytes == 0);
	assert_false(word_check(&i, (uint8_t *) &w, 8, 8, 80));
	assert_true(i.checked_bytes == 16 && i.bad_bytes == 1);
	assert_true(i.located && i.first.message == 80 && i.first.offset == 0);
	assert_false(word_check(&i, (uint8_t *) &w, 7 + (UINT64_C(3) << 40), 8, 90));
	assert_true(i.bad_bytes == 2);
	assert_true(i.first.message == 80); /* the first stays the first */
}

static void test_adding_up(void **state) {
	struct integrity sum = { .checked_bytes = 10 };
	const struct integrity clean = { .checked_bytes = 5 };
	const struct integrity bad = { .checked_bytes = 7, .bad_bytes = 2, .located = true,
				       .first = { .message = 3, .offset = 1 } };
	const struct integrity later = { .checked_bytes = 1, .bad_bytes = 1, .located = true,
					 .first = { .message = 9, .offset = 4 } };

	(void) state;
	integrity_add(&sum, &clean);
	assert_true(sum.checked_bytes == 15 && !sum.located);
	integrity_add(&sum, &bad);
	integrity_add(&sum, &later);
	assert_true(sum.checked_bytes == 23 && sum.bad_bytes == 3);
	assert_true(sum.located && sum.first.message == 3 && sum.first.offset == 1);
}

static void test_the_word_of_a_bad_byte_is_kept(void **state) {
	/* word 0 is the number of the message; four bytes have half of it */
	static const uint8_t expected[4] = { 7, 0, 0, 0 };
	_cleanup_free_ uint8_t *p = fresh(4, 7);
	struct integrity i = { 0 };
	uint64_t before = monotonic_ns();

	(void) state;
	p[2] = 0xab;
	assert_false(pattern_check(&i, p, 4, 7));
	assert_int_equal(i.first.word_bytes, 4);
	assert_memory_equal(i.first.expected, expected, 4);
	assert_memory_equal(i.first.found, p, 4);
	assert_true(i.first.found_ns >= before && i.first.found_ns <= monotonic_ns());
	assert_false(i.first.at_server);
}

static void test_a_bad_byte_is_the_same_at_the_other_end(void **state) {
	const struct bad_byte b = { .message = 12, .offset = 3, .found_ns = monotonic_ns() - NSEC_PER_SEC,
				    .word_bytes = 8, .expected = { 0, 0xff, 1, 2, 3, 4, 5, 0x80 },
				    .found = { 0, 0xfe, 1, 2, 3, 4, 5, 0xff } };
	const struct integrity i = { .located = true, .first = b }, none = { 0 };
	json_t *said = bad_byte_say(&i);
	struct bad_byte heard;

	(void) state;
	assert_null(bad_byte_say(&none));
	assert_int_equal(bad_byte_hear(said, &heard), 0);
	assert_true(heard.at_server && heard.message == 12 && heard.offset == 3 && heard.word_bytes == 8);
	assert_memory_equal(heard.expected, b.expected, 8);
	assert_memory_equal(heard.found, b.found, 8);
	/* A second ago, by whatever clock. */
	assert_true(heard.found_ns >= b.found_ns && heard.found_ns - b.found_ns < NSEC_PER_SEC);
	json_decref(said);
}

static void test_nonsense_about_a_bad_byte_is_refused(void **state) {
	static const char *const values[] = { "-1", "null", "\"1\"", "9223372036854775807" };
	static const char *const keys[] = { "message", "offset", "age_ns", "word_bytes" };
	const struct integrity i = { .located = true, .first = { .found_ns = monotonic_ns(), .word_bytes = 1 } };
	struct bad_byte heard;

	(void) state;
	for (size_t k = 0; k < ELEMENTSOF(keys); k++)
		/* where a message's number has no bound, the largest is one */
		for (size_t v = 0; v < ELEMENTSOF(values) - (k < 2); v++) {
			json_t *said = bad_byte_say(&i);

			assert_int_equal(json_object_set_new(said, keys[k],
							     json_loads(values[v], JSON_DECODE_ANY, NULL)), 0);
			assert_int_equal(bad_byte_hear(said, &heard), -EBADMSG);
			json_decref(said);
		}
	assert_int_equal(bad_byte_hear(NULL, &heard), -EBADMSG);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fill_and_check),
		cmocka_unit_test(test_every_flip_is_located),
		cmocka_unit_test(test_flips_of_long_messages_are_located),
		cmocka_unit_test(test_another_message_does_not_pass),
		cmocka_unit_test(test_most_bytes_of_another_message_differ),
		cmocka_unit_test(test_zeros_do_not_pass),
		cmocka_unit_test(test_poison),
		cmocka_unit_test(test_a_message_begins_with_its_number),
		cmocka_unit_test(test_what_never_came_is_not_corrupted),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_adding_up),
		cmocka_unit_test(test_the_word_of_a_bad_byte_is_kept),
		cmocka_unit_test(test_a_bad_byte_is_the_same_at_the_other_end),
		cmocka_unit_test(test_nonsense_about_a_bad_byte_is_refused),
	};

	return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
