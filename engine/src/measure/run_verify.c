/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which end checks what, and when:
 *
 *   send, write-imm            the receiver, as each message arrives
 *   write, seen arriving       the target, as each notification arrives
 *   write, not seen arriving   the target, when the client asks (CHECK): after each write in lat,
 *                              after each round of slots in bw
 *   read                       the initiator, on completion
 *   atomics                    the initiator: each slot has a word of its own at the target,
 *                              so that the value fetched is known
 *
 * In a GPU's memory the host can neither write nor read: there it works on a view,
 * which is copied to the GPU before a message leaves, and from it before a message is checked.
 * That is outside of what is timed, but for the server's part of a round trip, as all checking.
 *
 * Where messages may be lost (UC, UD), a message is first asked who it is;
 * what never came is counted as lost, not as corrupted.
 */
#include "run.h"

/*
 * A completed write may not be visible at once where its level is below delivery (fi_cq(3)):
 * how long the target looks again.
 */
#define VISIBLE_NS NSEC_PER_SEC

/*
 * So many messages in a row may be lost in one channel, and the next one is still recognised:
 * more than are ever under way.
 */
enum { LOST_MAX = 65536 };

/*
 * Before its first turn a slot holds the poison of another message than the one to come:
 * inverted bytes of that one must count as corrupted.
 * Even, so that even the shortest poison differs from the message (~(n + 2) = n has no solution modulo 256).
 */
enum { POISON_AHEAD = 2 };

bool verify_is_deferred(const struct run *r) {
	/* Where nothing reaches the peer, what was written lies here, and is checked like a read. */
	return r->job->verify && r->job->op == OP_WRITE && !r->phase.half_round_trip &&
	       !(r->backend->facts->flags & BACKEND_SOLO);
}

/* Operands that change from turn to turn, and are worth something to every operation: no product stays at 0. */
static uint64_t operand_of(const struct job *job, uint64_t turn) {
	return atomic_bits(job->atomic_type,
			   (unsigned) (job->atomic_op == ATOMIC_PROD ? turn % 3 + 1 : (turn * 5 + 2) % 7));
}

/* Every other comparison is with what is there. */
static uint64_t compare_of(const struct run *r, uint32_t slot, uint64_t turn) {
	return turn % 2 ? r->words[slot] : atomic_bits(r->job->atomic_type, (unsigned) (turn * 3 + 1) % 7);
}

/* The words of a target begin as 1 where the job says what happens to them, else as 0. */
static void fill_target(struct run *r, uint32_t slot, uint8_t *at) {
	const struct job *job = r->job;
	uint64_t word = op_is_general_atomic(job->op) ? atomic_bits(job->atomic_type, 1) : 0,
		bytes = job_word_bytes(job);

	for (uint64_t k = 0; k < r->phase.size; k += bytes)
		memcpy(at + k, &word, bytes); /* at most 8 of them, and little endian, as all that Perch runs on */
	r->words[slot] = word;
}

uint64_t verify_patience(const struct run *r) {
	const bool fills = r->job->verify && !op_takes_receive(r->job->op);

	return r->job->timeout_ns + (fills ? verify_takes(r->arena.slots * r->phase.size) : 0);
}

int verify_prepare(struct run *r) {
	const struct arena *a = &r->arena;
	const struct job *job = r->job;
	uint64_t size = r->phase.size;
	int e = 0;

	for (uint32_t slot = 0; job->verify && slot < a->slots && e == 0; slot++) {
		/* The source of reads never changes; its sequence is the slot's number. */
		if (job->op == OP_READ) {
			pattern_fill(arena_tx_view(a, slot), size, slot);
			e = arena_push_tx(a, slot, size);
		} else if (op_is_atomic(job->op)) {
			fill_target(r, slot, arena_rx_view(a, slot));
			e = arena_push_rx(a, slot, size);
		} else if (r->session->lossy && job->op == OP_WRITE) {
			/* A known poison, so that what was lost can be told from what was corrupted. */
			pattern_fill(arena_rx_view(a, slot), size, slot + POISON_AHEAD);
			pattern_poison(arena_rx_view(a, slot), size);
			e = arena_push_rx(a, slot, size);
		}
	}
	return e;
}

int verify_fill(struct run *r, uint32_t slot, uint64_t sequence, struct work *work) {
	const struct arena *a = &r->arena;
	uint64_t turn = sequence / a->slots;

	if (op_is_general_atomic(work->op)) {
		work->operand = operand_of(r->job, turn);
		work->compare = compare_of(r, slot, turn);
		return 0;
	}
	if (op_is_atomic(work->op)) {
		/*
		 * Slots are taken in turn, so a slot's n-th operation finds n: n increments by 1,
		 * or n swaps from n - 1 to n.
		 */
		work->operand = work->op == OP_FETCH_ADD ? 1 : turn + 1;
		work->compare = turn;
		return 0;
	}
	if (work->op == OP_READ) {
		pattern_fill_poison(arena_rx_view(a, slot), work->size, slot);
		return arena_push_rx(a, slot, work->size);
	}
	pattern_fill(arena_tx_view(a, slot), work->size, sequence);
	return arena_push_tx(a, slot, work->size);
}

/* What was fetched is what the slot's last operation left there. */
static int check_words(struct run *r, uint32_t slot, uint64_t sequence) {
	const struct job *job = r->job;
	uint8_t *p = arena_rx_view(&r->arena, slot);
	uint64_t turn = sequence / r->arena.slots, bytes = job_word_bytes(job);
	uint64_t expected = op_is_general_atomic(job->op) ? r->words[slot] : turn;

	for (uint64_t k = 0; k < r->phase.size; k += bytes)
		(void) word_check(&r->outcome.integrity, p + k, expected, bytes, sequence);
	if (op_is_general_atomic(job->op))
		r->words[slot] = atomic_after(job->atomic_type, job->atomic_op, expected, operand_of(job, turn),
					      compare_of(r, slot, turn));
	return 0;
}

int verify_local(struct run *r, uint32_t slot, uint64_t sequence) {
	struct integrity *i = &r->outcome.integrity;
	uint8_t *p = arena_rx_view(&r->arena, slot);
	int e = arena_pull_rx(&r->arena, slot, r->phase.size);

	if (e < 0)
		return e;
	if (!op_is_atomic(r->job->op)) {
		bool located = i->located;

		(void) pattern_check(i, p, r->phase.size, r->job->op == OP_READ ? slot : sequence);
		if (!located && i->located)
			i->first.message = sequence; /* not the slot, whose number a read carries */
		if (r->job->op == OP_READ)
			return 0; /* poisoned when its place is read into again */
		pattern_poison(p, r->phase.size);
		return arena_push_rx(&r->arena, slot, r->phase.size);
	}
	return check_words(r, slot, sequence);
}

/* A write that is seen arriving by its last byte, which is a stamp. */
static bool is_stamped(const struct run *r) {
	return r->session->stamps && r->phase.half_round_trip;
}

/* Looks at the view, which has been brought up to date: whether every byte is right. */
static bool look_at_view(struct run *r, uint32_t slot, uint64_t sequence, struct integrity *found) {
	uint8_t *p = arena_rx_view(&r->arena, slot);

	/*
	 * The backend has waited for exactly this stamp: it was right,
	 * and is replaced by what the pattern has in its place.
	 */
	if (is_stamped(r))
		p[r->phase.size - 1] = pattern_byte(r->phase.size - 1, sequence);
	return pattern_check(found, p, r->phase.size, sequence);
}

/* What has been looked at must not count again. */
static int spoil_view(struct run *r, uint32_t slot) {
	uint8_t *p = arena_rx_view(&r->arena, slot);

	pattern_poison(p, r->phase.size);
	if (is_stamped(r))
		p[r->phase.size - 1] = 0; /* which no stamp is */
	return arena_push_rx(&r->arena, slot, r->phase.size);
}

/*
 * Whether to look again: a device that does not write in order may place a stamp before other bytes.
 * Not once a message has stayed wrong: a path that damages them all is corrupted, and not slow.
 */
static bool may_follow(struct run *r, uint64_t *deadline) {
	const uint64_t now = monotonic_ns();

	if (*deadline == 0)
		*deadline = now + VISIBLE_NS;
	r->heart++;
	return is_stamped(r) && r->outcome.integrity.bad_bytes == 0 && now < *deadline;
}

int verify_received(struct run *r, uint32_t slot, uint64_t sequence) {
	struct integrity found;
	uint64_t deadline = 0;
	bool right;

	do {
		int e = arena_pull_rx(&r->arena, slot, r->phase.size);

		if (e < 0)
			return e;
		found = r->outcome.integrity;
		right = look_at_view(r, slot, sequence, &found);
	} while (!right && may_follow(r, &deadline));
	r->outcome.integrity = found;
	return spoil_view(r, slot);
}

/* The number within its channel of the message in p, which is `expected` or one that follows it. */
static uint64_t recognise(const struct run *r, const uint8_t *p, uint32_t channel, uint64_t expected) {
	for (uint64_t number = expected; number < expected + LOST_MAX; number++)
		if (pattern_begins(p, r->phase.size, job_sequence(r->job, channel, number)))
			return number;
	return expected; /* corrupted where its name was */
}

int verify_arrived(struct run *r, const struct completion *c) {
	uint8_t *p = arena_rx_view(&r->arena, c->slot);
	uint64_t *number = r->arrivals + c->channel;
	int e;

	e = arena_pull_rx(&r->arena, c->slot, r->phase.size);
	if (e < 0)
		return e;
	if (r->session->lossy) {
		pattern_hook(p, r->phase.size); /* corruption comes before recognition, in tests too */
		*number = recognise(r, p, c->channel, *number);
	}
	(void) look_at_view(r, c->slot, job_sequence(r->job, c->channel, (*number)++), &r->outcome.integrity);
	return spoil_view(r, c->slot);
}

/*
 * Whether a slot that is not as it should be was simply not written, or only in part, since packets were lost:
 * each byte is then the right one, or still what lay there. A slot is poisoned from what it held a turn before.
 */
static bool is_lost(const struct run *r, const uint8_t *p, uint64_t sequence) {
	uint64_t before = sequence < r->arena.slots ? sequence + POISON_AHEAD : sequence - r->arena.slots;

	return r->session->lossy && pattern_is_stale(p, r->phase.size, sequence, before);
}

int verify_ask(struct run *r, uint64_t first, uint64_t count) {
	int e;

	r->checked = false;
	e = control_send(r->control, FRAME_CHECK,
			 json_pack("{s:I, s:I}", "first", (json_int_t) first, "count", (json_int_t) count));
	return e < 0 ? e : run_wait_peer(r, FRAME_CHECKED);
}

int verify_answer(struct run *r, json_t *payload) {
	struct completion c[RUN_COMPLETIONS];
	json_int_t first, count;
	int e;

	if (json_unpack(payload, "{s:I, s:I!}", "first", &first, "count", &count) < 0 || first < 0 || count < 0 ||
	    count > (json_int_t) r->arena.window || first > INT64_MAX - count)
		return failure(-EPROTO, EXIT_PEER, "%s asked for an impossible check; refused", r->control->peer_name);
	for (json_int_t i = first; i < first + count; i++) {
		uint32_t slot = (uint32_t) ((uint64_t) i % r->arena.slots);
		uint8_t *p = arena_rx_view(&r->arena, slot);
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
			n = arena_pull_rx(&r->arena, slot, r->phase.size);
			if (n < 0)
				return n;
		} while (!pattern_check(&found, p, r->phase.size, (uint64_t) i) && r->session->level < LEVEL_DELIVERY &&
			 monotonic_ns() < deadline);
		if (found.bad_bytes > r->outcome.integrity.bad_bytes && is_lost(r, p, (uint64_t) i)) {
			r->outcome.lost++;
			pattern_fill(p, r->phase.size, (uint64_t) i);
		} else
			r->outcome.integrity = found;
		pattern_poison(p, r->phase.size);
		e = arena_push_rx(&r->arena, slot, r->phase.size);
		if (e < 0)
			return e;
	}
	return control_send(r->control, FRAME_CHECKED, NULL);
}
