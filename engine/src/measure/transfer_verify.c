/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every byte of every transfer is checked where it lands: reads at the initiator, writes at the target,
 * which is asked after each batch. A transfer is looked at as a whole, whatever it was cut into:
 * its pattern goes on across its pieces.
 *
 *     writes    transfer t of the lane's n-th batch carries the pattern of number n * batch + t
 *     reads     the source never changes: transfer t carries the pattern of number t
 *
 * Checked places are poisoned, so that nothing stale passes for new.
 */
#include "base/message.h"
#include "transfer.h"

/*
 * A completed write may not be visible at once where its level is below delivery (fi_cq(3)):
 * how long the target looks again.
 */
#define VISIBLE_NS NSEC_PER_SEC

static uint64_t offset_of(const struct shape *s, uint32_t transfer) {
	return transfer * s->stride;
}

int transfer_fill_source(struct lane *l) {
	const struct shape *s = &l->transfer->shape;
	const struct arena *a = &l->run.arena;
	int e = 0;

	for (uint32_t t = 0; e == 0 && t < s->batch; t++) {
		pattern_fill(a->view_tx + offset_of(s, t), s->size, l->sequence + t);
		e = arena_push(a, offset_of(s, t), s->size);
	}
	return e;
}

int transfer_poison(struct lane *l) {
	const struct shape *s = &l->transfer->shape;
	const struct arena *a = &l->run.arena;
	int e = 0;

	for (uint32_t t = 0; e == 0 && t < s->batch; t++) {
		pattern_poison(a->view_rx + offset_of(s, t), s->size);
		e = arena_push(a, offset_of(s, t), s->size);
	}
	return e;
}

/*
 * One transfer, looked at again for a while where it may come into view late.
 * Not once one has stayed wrong: a path that damages them all must be called corrupted,
 * before the initiator calls a target dead that looks at each for so long.
 */
static int check_one(struct lane *l, uint32_t t, uint64_t number) {
	const struct shape *s = &l->transfer->shape;
	const struct arena *a = &l->run.arena;
	uint64_t deadline = monotonic_ns() + VISIBLE_NS;
	struct integrity found;
	bool good;
	int e;

	do {
		found = l->integrity;
		e = arena_pull(a, offset_of(s, t), s->size);
		if (e < 0)
			return e;
		good = pattern_check(&found, a->view_rx + offset_of(s, t), s->size, number);
	} while (!good && l->run.session->level < LEVEL_DELIVERY && l->integrity.bad_bytes == 0 &&
		 monotonic_ns() < deadline);
	l->integrity = found;
	return 0;
}

int transfer_check(struct lane *l, uint64_t sequence) {
	const struct shape *s = &l->transfer->shape;
	int e = 0;

	for (uint32_t t = 0; e == 0 && t < s->batch; t++)
		e = check_one(l, t, l->job.op == OP_READ ? t : sequence + t);
	return e < 0 || l->job.op == OP_READ ? e : transfer_poison(l);
}

/* Filled, poisoned and checked at so many bytes a second at least: an emulated processor does ten times as much. */
#define VERIFY_BYTES_PER_S (UINT64_C(16) << 20)

uint64_t transfer_patience(const struct transfer *x) {
	uint64_t bytes = x->job.verify ? shape_bytes(&x->shape) * x->n_lanes : 0;

	return x->job.timeout_ns + bytes / VERIFY_BYTES_PER_S * NSEC_PER_SEC;
}

int transfer_ask(struct lane *l) {
	struct transfer *x = l->transfer;
	int e = -ECANCELED;

	/*
	 * Answers come in the order of the questions, so one question at a time;
	 * after one that nobody answered there is no other.
	 */
	(void) pthread_mutex_lock(&x->control_lock);
	if (!atomic_load(&x->stop))
		e = control_send(x->control, FRAME_CHECK, json_pack("{s:I, s:I}", "lane", (json_int_t) l->number,
								    "first", (json_int_t) l->sequence));
	if (e == 0)
		e = control_expect(x->control, FRAME_CHECKED, transfer_patience(x), NULL);
	if (e < 0)
		atomic_store(&x->stop, true);
	(void) pthread_mutex_unlock(&x->control_lock);
	return e;
}
