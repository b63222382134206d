/* SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

#include "base/clock.h"

/*
 * Odd constants of splitmix64 (Steele, Lea, Flood 2014):
 * neighbours in sequence or offset differ in about half their bits.
 */
#define STEP_SEQUENCE UINT64_C(0x9E3779B97F4A7C15)
#define STEP_WORD UINT64_C(0xBF58476D1CE4E5B9)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words of the pattern are little endian");

/*
 * Word 0 is the plain number: even a 1-byte message names its place (modulo 256). All others are two products,
 * so that the next ones need an addition and an exclusive or: each CPU has these for vectors.
 */
static inline uint64_t word_at(uint64_t sequence, uint64_t index) {
	return index == 0 ? sequence : (sequence * STEP_SEQUENCE) ^ (index * STEP_WORD);
}

/* Two words: a vector of every CPU that Perch runs on (SSE2, NEON). */
typedef uint64_t words __attribute__((vector_size(16)));
enum { WORDS = sizeof(words) / sizeof(uint64_t), STRIDE = 256 };

/* The products of a word's index and of the one after it. */
static inline words products_at(uint64_t index) {
	return (words) { index * STEP_WORD, (index + 1) * STEP_WORD };
}

/* `flip`: 0, or all bits, which inverts them. */
static inline void fill(uint8_t *buffer, uint64_t size, uint64_t sequence, uint64_t flip) {
	const uint64_t first = sequence ^ flip;
	words products = products_at(0);
	uint64_t k;

	for (k = 0; k + sizeof(words) <= size; k += sizeof(words), products += WORDS * STEP_WORD) {
		words w = (sequence * STEP_SEQUENCE ^ flip) ^ products;

		memcpy(buffer + k, &w, sizeof(w));
	}
	for (; k < size; k += sizeof(uint64_t)) {
		uint64_t w = word_at(sequence, k / sizeof(w)) ^ flip;

		memcpy(buffer + k, &w, MIN(sizeof(w), size - k));
	}
	memcpy(buffer, &first, MIN(sizeof(first), size));
}

void pattern_fill(uint8_t *buffer, uint64_t size, uint64_t sequence) {
	fill(buffer, size, sequence, 0);
}

void pattern_fill_poison(uint8_t *buffer, uint64_t size, uint64_t sequence) {
	fill(buffer, size, sequence, UINT64_MAX);
}

uint8_t pattern_byte(uint64_t offset, uint64_t sequence) {
	uint64_t w = word_at(sequence, offset / sizeof(w));
	uint8_t bytes[sizeof(w)];

	memcpy(bytes, &w, sizeof(w));
	return bytes[offset % sizeof(w)];
}

bool pattern_begins(const uint8_t *buffer, uint64_t size, uint64_t sequence) {
	uint64_t w = word_at(sequence, 0);

	return memcmp(buffer, &w, MIN(size, sizeof(w))) == 0;
}

bool pattern_is_stale(const uint8_t *buffer, uint64_t size, uint64_t sequence, uint64_t before) {
	for (uint64_t i = 0; i < size; i++)
		if (buffer[i] != pattern_byte(i, sequence) && (buffer[i] ^ pattern_byte(i, before)) != UINT8_MAX)
			return false;
	return true;
}

void integrity_add(struct integrity *to, const struct integrity *from) {
	to->checked_bytes += from->checked_bytes;
	to->bad_bytes += from->bad_bytes;
	if (to->located || !from->located)
		return;
	to->located = true;
	to->first = from->first;
}

/* The inverse of what lies there: differs from it in every bit, whatever it was. */
void pattern_poison(uint8_t *buffer, uint64_t size) {
	uint64_t k;
	words w;

	for (k = 0; k + sizeof(w) <= size; k += sizeof(w)) {
		memcpy(&w, buffer + k, sizeof(w));
		w = ~w;
		memcpy(buffer + k, &w, sizeof(w));
	}
	for (; k < size; k++)
		buffer[k] = (uint8_t) ~buffer[k];
}

#ifdef PERCH_TEST_HOOKS
/*
 * Test builds only (make -C engine hooks): PERCH_TEST_FLIP=N flips the middle byte of the N-th checked buffer of this
 * process, in the receive buffer and before the check, as a corrupting memory or wire would. PERCH_TEST_FLIP=@FILE does
 * so in the next one after somebody has made FILE, and only whose unlink() it was: one byte of one process.
 */
static const uint8_t *hooked; /* this buffer has had its turn, and is checked next */

static void test_hook_flip(uint8_t *buffer, uint64_t size) {
	static int64_t remaining = -1;
	static const char *e;

	if (buffer == hooked) {
		hooked = NULL;
		return;
	}
	if (remaining < 0) {
		e = getenv("PERCH_TEST_FLIP");
		remaining = e && e[0] != '@' ? strtoll(e, NULL, 10) : INT64_MAX;
	}
	if (e && e[0] == '@' && unlink(e + 1) == 0)
		remaining = 0;
	if (remaining == 0)
		buffer[size / 2] ^= 0xff;
	remaining = remaining == 0 ? INT64_MAX : remaining - 1;
}

/* A buffer that is not written yet will be looked at again: what is flipped there would be written over. */
static void test_hook_check(uint8_t *buffer, uint64_t size, uint64_t sequence) {
	for (uint64_t i = 0; buffer != hooked && i < size; i++)
		if (buffer[i] != pattern_byte(i, sequence))
			return;
	test_hook_flip(buffer, size);
}

void pattern_hook(uint8_t *buffer, uint64_t size) {
	test_hook_flip(buffer, size);
	hooked = buffer;
}
#else
#define test_hook_flip(buffer, size) ((void) 0)
#define test_hook_check(buffer, size, sequence) ((void) 0)
#endif

static void locate(struct integrity *i, const uint8_t *got, const uint8_t *want, size_t n, uint64_t offset,
		   uint64_t sequence) {
	i->located = true;
	i->first = (struct bad_byte) { .message = sequence, .offset = offset, .found_ns = monotonic_ns(),
				       .word_bytes = (uint8_t) n };
	memcpy(i->first.expected, want, n);
	memcpy(i->first.found, got, n);
}

/* Counts the bytes that differ; called only where a whole word already did. */
static void count_bad(struct integrity *i, const uint8_t *got, const uint8_t *want, size_t n, uint64_t offset,
		      uint64_t sequence) {
	for (size_t k = 0; k < n; k++)
		if (got[k] != want[k]) {
			i->bad_bytes++;
			if (!i->located)
				locate(i, got, want, n, offset + k, sequence);
		}
}

/* The first stride from k, a multiple of 8, that differs or is not whole. Word 0 differs: it is no product. */
static uint64_t skip_right(const uint8_t *buffer, uint64_t size, uint64_t k, uint64_t sequence) {
	words products = products_at(k / sizeof(uint64_t)), w, differ;

	for (; k + STRIDE <= size; k += STRIDE) {
		differ = (words) { 0 };
		for (unsigned i = 0; i < STRIDE; i += sizeof(w), products += WORDS * STEP_WORD) {
			memcpy(&w, buffer + k + i, sizeof(w));
			differ |= w ^ (sequence * STEP_SEQUENCE) ^ products;
		}
		if (differ[0] | differ[1])
			break;
	}
	return k;
}

bool pattern_check(struct integrity *i, uint8_t *buffer, uint64_t size, uint64_t sequence) {
	uint64_t before = i->bad_bytes, k = 0;

	test_hook_check(buffer, size, sequence);
	while (k < size) {
		uint64_t w = word_at(sequence, k / sizeof(w));
		size_t n = MIN(sizeof(w), size - k);

		if (memcmp(buffer + k, &w, n) != 0)
			count_bad(i, buffer + k, (const uint8_t *) &w, n, k, sequence);
		k += n;
		if (k % STRIDE == sizeof(w))
			k = skip_right(buffer, size, k, sequence);
	}
	i->checked_bytes += size;
	return i->bad_bytes == before;
}

bool word_check(struct integrity *i, uint8_t *buffer, uint64_t expected, uint64_t bytes, uint64_t sequence) {
	uint64_t before = i->bad_bytes;

	test_hook_flip(buffer, bytes);
	if (memcmp(buffer, &expected, bytes) != 0)
		count_bad(i, buffer, (const uint8_t *) &expected, bytes, 0, sequence);
	i->checked_bytes += bytes;
	return i->bad_bytes == before;
}
