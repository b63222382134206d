/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one measurement: an arena with a transmit and a receive half, each of equal slots. Without verification
 * slots share memory, as perftest's do (its cycle buffer), so that a deep queue of large messages measures the network
 * and not the cache; with it every slot has memory of its own.
 */
#pragma once

#include "util.h"

struct arena {
	uint8_t *base;          /* page aligned; tx half first */
	size_t length;          /* of both halves, bytes */
	uint64_t slot_bytes;    /* usable */
	uint64_t stride;        /* from one distinct slot to the next */
	uint32_t slots;         /* as numbered */
	uint32_t distinct;      /* with memory of their own */
	uint32_t mask;          /* slot & mask is the place: a division would cost more than the rest of a null sample */
};

/* Maps and touches, in huge pages of that many bytes (0: none). -ENOMEM (said, EXIT_HOST). */
int arena_open(struct arena *ret, uint64_t slot_bytes, uint32_t slots, bool distinct, uint64_t huge);
void arena_close(struct arena *arena);

static inline uint64_t arena_tx_offset(const struct arena *a, uint32_t slot) {
	return (uint64_t) (slot & a->mask) * a->stride;
}

static inline uint64_t arena_rx_offset(const struct arena *a, uint32_t slot) {
	return a->length / 2 + (uint64_t) (slot & a->mask) * a->stride;
}

static inline uint8_t *arena_tx(const struct arena *a, uint32_t slot) {
	return a->base + arena_tx_offset(a, slot);
}

static inline uint8_t *arena_rx(const struct arena *a, uint32_t slot) {
	return a->base + arena_rx_offset(a, slot);
}
