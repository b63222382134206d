/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which end checks what, and when:
 *
 *   send                       the receiver, as each message arrives
 *   write, seen arriving       the target, as each notification arrives
 *   write, not seen arriving   the target, when the client asks (CHECK): after each write in lat, after each round of slots in bw
 *   read                       the initiator, on completion
 *   atomics                    the initiator: each slot has a word of its own at the target, so that the value fetched is known
 */
#include "run.h"

/* A completed write may not be visible at once where its level is below delivery (fi_cq(3)): how long the target looks again. */
#define VISIBLE_NS NSEC_PER_SEC

bool verify_is_deferred(const struct run *r) {
	/* Where nothing reaches the peer, what was written lies here, and is checked like a read. */
	return r->job->verify && r->job->op == OP_WRITE && !r->phase.half_round_trip && !(r->backend->flags & BACKEND_SOLO);
}

void verify_prepare(struct run *r) {
	const struct job *job = r->job;

	for (uint32_t slot = 0; job->verify && slot < r->arena.slots; slot++) {
		/* The source of reads never changes; its sequence is the slot's number. */
		if (job->op == OP_READ)
			pattern_fill(arena_tx(&r->arena, slot), r->phase.size, slot);
		else if (op_is_atomic(job->op))
			memset(arena_rx(&r->arena, slot), 0, r->phase.size);
	}
}

void verify_fill(struct run *r, uint32_t slot, uint64_t sequence, struct work *work) {
	const struct arena *a = &r->arena;
	uint64_t turn = sequence / a->slots;

	if (op_is_atomic(work->op)) {
		/* Slots are taken in turn, so a slot's n-th operation finds n: n increments by 1, or n swaps from n - 1 to n. */
		work->operand = work->op == OP_FETCH_ADD ? 1 : turn + 1;
		work->compare = turn;
	} else if (work->op == OP_READ)
		pattern_poison(arena_rx(a, slot), work->size);
	else
		pattern_fill(arena_tx(a, slot), work->size, sequence);
}

void verify_local(struct run *r, uint32_t slot, uint64_t sequence) {
	struct integrity *i = &r->outcome.integrity;
	uint8_t *p = arena_rx(&r->arena, slot);

	if (!op_is_atomic(r->job->op)) {
		bool located = i->located;

		(void) pattern_check(i, p, r->phase.size, r->job->op == OP_READ ? slot : sequence);
		if (!located && i->located)
			i->first_message = sequence; /* not the slot, whose number a read carries */
		pattern_poison(p, r->phase.size);
		return;
	}
	for (uint64_t k = 0; k < r->phase.size; k += sizeof(uint64_t))
		(void) word_check(i, p + k, sequence / r->arena.slots, sequence);
}

void verify_received(struct run *r, uint32_t slot, uint64_t sequence) {
	uint8_t *p = arena_rx(&r->arena, slot);

	(void) pattern_check(&r->outcome.integrity, p, r->phase.size, sequence);
	pattern_poison(p, r->phase.size);
}

int verify_ask(struct run *r, uint64_t first, uint64_t count) {
	int e;

	r->checked = false;
	e = control_send(r->control, FRAME_CHECK, json_pack("{s:I, s:I}", "first", (json_int_t) first, "count", (json_int_t) count));
	return e < 0 ? e : run_wait_peer(r, FRAME_CHECKED);
}

int verify_answer(struct run *r, json_t *payload) {
	struct completion c[RUN_COMPLETIONS];
	json_int_t first, count;

	if (json_unpack(payload, "{s:I, s:I!}", "first", &first, "count", &count) < 0 || first < 0 || count < 0 ||
	    count > (json_int_t) r->arena.slots || first > INT64_MAX - count)
		return failure(-EPROTO, EXIT_PEER, "%s asked for an impossible check; refused", r->control->peer_name);
	for (json_int_t i = first; i < first + count; i++) {
		uint32_t slot = (uint32_t) ((uint64_t) i % r->arena.slots);
		uint8_t *p = arena_rx(&r->arena, slot);
		uint64_t deadline = monotonic_ns() + VISIBLE_NS;
		struct integrity found;

		do {
			int n = r->backend->poll(r->session, c, RUN_COMPLETIONS);

			r->heart++; /* many large messages take long to look at, and are no stall */
			if (n < 0)
				return n;
			for (int k = 0; k < n; k++)
				r->busy[c[k].slot] = false;
			r->stashed += (uint64_t) n; /* own writes, where both ends write */
			found = r->outcome.integrity;
		} while (!pattern_check(&found, p, r->phase.size, (uint64_t) i) && r->session->level < LEVEL_DELIVERY &&
			 monotonic_ns() < deadline);
		r->outcome.integrity = found;
		pattern_poison(p, r->phase.size);
	}
	return control_send(r->control, FRAME_CHECKED, NULL);
}
