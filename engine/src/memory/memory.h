/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one measurement: an arena with a transmit and a receive half, each of equal slots. Without verification
 * the slots of a queue pair share a buffer, as perftest's do (its cycle buffer), so that a deep queue of large messages
 * measures the network and not the cache; with it every slot has memory of its own.
 *
 * Either half may lie in a GPU. The host must not touch such memory: what --verify writes and reads goes through a view
 * of it in host memory, and is copied before a message leaves or after it came.
 */
#pragma once

#include "gpu.h"
#include "base/util.h"

/* One piece of memory, to be registered as a whole. */
struct region {
	uint8_t *base;          /* page aligned; an address of the GPU's where there is one */
	size_t length;
	struct gpu *gpu;        /* NULL: host memory */
	bool borrowed;          /* of another arena, which closes it, and has the offsets */
};

/* So many queue pairs use an arena in turn, each with a run of slots. The slots are a multiple of one turn. */
struct queues {
	uint32_t n, run;
};

struct arena {
	uint8_t *tx, *rx;       /* where the halves begin */
	size_t length;          /* of both halves, bytes: the same at both ends, whatever pages they have */
	uint64_t slot_bytes;    /* usable */
	uint64_t stride;        /* from one distinct slot to the next */
	uint32_t slots;         /* as numbered; a multiple of */
	uint32_t window;        /* those that may be in use at a time, which follow each other */
	uint32_t distinct;      /* with memory of their own, as far as anybody may rely on it */
	/* slot * factor & mask is the place: a division would cost more than the rest of a null sample */
	uint32_t factor, mask;
	uint64_t *offsets;      /* of slots, where several queue pairs have a buffer each; NULL: by factor and mask */

	struct region regions[2];       /* of the halves: one for both where both are of one kind, else tx's and rx's */
	unsigned n_regions;
	struct region views[2];         /* of GPU memory, tx's and rx's, where slots are `distinct`, or verified */
	/* where the host reads and writes: the halves themselves, or views; NULL: it cannot */
	uint8_t *view_tx, *view_rx;
};

/*
 * Maps and touches. `queues`: NULL: one. `kinds`: of transmit and of receive memory; NULL: host memory.
 * -ENOMEM, or what opening a GPU says (said, EXIT_HOST).
 */
int arena_open(struct arena *ret, uint64_t slot_bytes, uint32_t slots, const struct queues *queues, bool distinct,
	       const struct memory_kind kinds[2]);

/*
 * The same with --footprint: slots are scattered over halves of `bytes`, which hold at least one of each queue pair,
 * and there are as many as fit. -EINVAL (said): with `distinct` all of a window must fit.
 */
int arena_open_scattered(struct arena *ret, uint64_t bytes, uint64_t slot_bytes, uint32_t window,
			 const struct queues *queues, bool distinct, const struct memory_kind kinds[2]);

/*
 * A buffer of one kind, of `bytes`, in which what is sent and what comes in lie at the same offsets (tx and rx
 * are one): transfers place their messages themselves, `slots` is only how many there may be. Only with `verified` has
 * memory of a GPU a view, which takes as much of the host's. Fails like arena_open().
 */
int arena_open_flat(struct arena *ret, uint64_t bytes, uint32_t slots, bool verified, const struct memory_kind *kind);

/* Brings `size` bytes from an offset of a flat arena into its view, or out of it. */
int arena_pull(const struct arena *a, uint64_t offset, uint64_t size);
int arena_push(const struct arena *a, uint64_t offset, uint64_t size);

/*
 * Another arena of the same shape in host memory alone; halves that are there already are shared.
 * It must be closed first.
 */
int arena_open_bounce(struct arena *ret, const struct arena *of);

void arena_close(struct arena *arena);

/* As fast at least is memory touched for the first time: a quarter of what a core of 2 GHz clears, page by page. */
#define ARENA_BYTES_PER_S (UINT64_C(256) << 20)

/* How long the other end, whose arena is as large, may take to open it, in ns. */
static inline uint64_t arena_takes(const struct arena *a) {
	return a->length / ARENA_BYTES_PER_S * NSEC_PER_SEC;
}

/* Of a slot, from the beginning of its half. */
static inline uint64_t arena_offset(const struct arena *a, uint32_t slot) {
	if (unlikely(a->offsets != NULL))
		return a->offsets[slot];
	return (uint64_t) (slot * a->factor & a->mask) * a->stride;
}

static inline uint8_t *arena_tx(const struct arena *a, uint32_t slot) {
	return a->tx + arena_offset(a, slot);
}

static inline uint8_t *arena_rx(const struct arena *a, uint32_t slot) {
	return a->rx + arena_offset(a, slot);
}

static inline const struct region *arena_tx_region(const struct arena *a) {
	return &a->regions[0];
}

static inline const struct region *arena_rx_region(const struct arena *a) {
	return &a->regions[a->n_regions - 1];
}

/* The model of the GPU, or of both; empty: none. */
void arena_gpu_name(const struct arena *a, char *ret, size_t size);

/* What the host may read and write of a slot. */
static inline uint8_t *arena_tx_view(const struct arena *a, uint32_t slot) {
	return a->view_tx + arena_offset(a, slot);
}

static inline uint8_t *arena_rx_view(const struct arena *a, uint32_t slot) {
	return a->view_rx + arena_offset(a, slot);
}

/* Bring a slot's view and its memory together; nothing to do in host memory. Negative: said, EXIT_INTERNAL. */
int arena_push_tx(const struct arena *a, uint32_t slot, uint64_t size);         /* view to memory */
int arena_push_rx(const struct arena *a, uint32_t slot, uint64_t size);
int arena_pull_rx(const struct arena *a, uint32_t slot, uint64_t size);         /* memory to view */
