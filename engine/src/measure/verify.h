/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payload verification: every message carries a pattern that names its place in the sequence,
 * and is checked byte by byte.
 */
#pragma once

#include "base/util.h"

/*
 * A byte that was not what it should be, and the word of the pattern (8 bytes,
 * or what the message has left of them) that it lay in.
 */
struct bad_byte {
	bool at_server;                         /* who found it */
	uint64_t message, offset;
	uint64_t found_ns;                      /* when, monotonic; 0: unknown */
	uint8_t word_bytes;                     /* 0: unknown */
	uint8_t expected[8], found[8];
};

struct integrity {
	uint64_t checked_bytes;
	uint64_t bad_bytes;
	bool located;                           /* the first bad byte is known */
	struct bad_byte first;
};

/* Fills `size` bytes with the pattern of message `sequence`. */
void pattern_fill(uint8_t *buffer, uint64_t size, uint64_t sequence);

/* Fills with the poison of that pattern: as often as it may be, where pattern_poison() inverts again. */
void pattern_fill_poison(uint8_t *buffer, uint64_t size, uint64_t sequence);

/* Fills with what no pattern is, so that a stale buffer can never pass for a new message. */
void pattern_poison(uint8_t *buffer, uint64_t size);

/* Filled, poisoned and checked at so many bytes a second at least: an emulated processor does ten times as much. */
#define VERIFY_BYTES_PER_S (UINT64_C(16) << 20)

/* How long a peer may take for so many bytes, in ns. */
static inline uint64_t verify_takes(uint64_t bytes) {
	return bytes / VERIFY_BYTES_PER_S * NSEC_PER_SEC;
}

/* The byte of a message's pattern at an offset. */
uint8_t pattern_byte(uint64_t offset, uint64_t sequence);

/*
 * Before a buffer is asked whose it is, and then checked: test builds corrupt it here already,
 * as they do in pattern_check().
 */
#ifdef PERCH_TEST_HOOKS
void pattern_hook(uint8_t *buffer, uint64_t size);
#else
#define pattern_hook(buffer, size) ((void) 0)
#endif

/* Whether a buffer begins as message `sequence` does: with its number, as far as there is room. */
bool pattern_begins(const uint8_t *buffer, uint64_t size, uint64_t sequence);

/* Whether each byte is that of message `sequence`, or the poison of message `before`. */
bool pattern_is_stale(const uint8_t *buffer, uint64_t size, uint64_t sequence, uint64_t before);

/* Compares and counts; true where every byte is right. */
bool pattern_check(struct integrity *i, uint8_t *buffer, uint64_t size, uint64_t sequence);

/* Adds up; the first bad byte stays the first. */
void integrity_add(struct integrity *to, const struct integrity *from);

/* The same for one word of an atomic, of `bytes` 1 to 8. */
bool word_check(struct integrity *i, uint8_t *buffer, uint64_t expected, uint64_t bytes, uint64_t sequence);
