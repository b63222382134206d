/* SPDX-License-Identifier: Apache-2.0 */
/* Where messages lie in a buffer: one behind the other, or scattered over all of it (--footprint). */
#pragma once

#include "base/util.h"

/* A cache line of every server processor that has an RDMA card: each scattered message begins one. */
enum { PLACE_LINE_BYTES = 64 };

struct places {
	uint32_t n;                     /* messages that have memory of their own */
	uint32_t factor, mask;          /* place i is number i * factor & mask of the region: each once */
	uint64_t stride;                /* bytes from one to the next */
	uint64_t region;                /* bytes from those of one queue pair to those of the next */
};

/* Bytes of one message, in whole cache lines. */
static inline uint64_t place_bytes(uint64_t message) {
	return (message + PLACE_LINE_BYTES - 1) / PLACE_LINE_BYTES * PLACE_LINE_BYTES;
}

/*
 * In `bytes`, which hold at least one message, places for messages of `message` bytes in a pseudo-random order:
 * a power of two of them, as many as fit, and `most` at most.
 */
void places_scatter(uint64_t bytes, uint64_t message, uint32_t most, struct places *ret);

/*
 * Whether a footprint of so many bytes, which `queues` share, has memory of its own for each of `window` messages of
 * --verify. -EINVAL (said, EXIT_USAGE).
 */
int places_suffice(const struct places *p, uint64_t footprint, uint64_t message, uint32_t queues, uint32_t window);

/* Place `number` of a region in which each lies behind the one before, or in the scattered order. */
static inline uint64_t place_in_region(const struct places *p, uint32_t number) {
	return (number * p->factor & p->mask) * p->stride;
}

/* From the beginning of the buffer; `place` is below n. */
static inline uint64_t place_offset(const struct places *p, uint32_t queue_pair, uint32_t place) {
	return queue_pair * p->region + place_in_region(p, place);
}
