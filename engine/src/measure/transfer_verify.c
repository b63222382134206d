/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every byte of every transfer is checked where it lands: reads at the initiator, writes at the target,
 * which is asked after each batch. A transfer is looked at as a whole, whatever it was cut into:
 * its pattern goes on across its pieces.
 *
 *     writes    transfer t of the lane's n-th batch carries the pattern of number n * batch + t
 *     reads     the source never changes: a transfer carries the number of its place, which without --footprint is t
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

static int fill(struct lane *l, uint64_t first, uint32_t n) {
	const struct shape *s = &l->transfer->shape;
	const struct arena *a = &l->run.arena;
	int e = 0;

	for (uint64_t number = first; e == 0 && number < first + n; number++) {
		uint64_t offset = place_in_region(&s->places, shape_place(s, number));

		pattern_fill(a->view_tx + offset, s->size, number);
		e = arena_push(a, offset, s->size);
	}
	return e;
}

static int poison(struct lane *l, uint64_t first, uint32_t n) {
	const struct shape *s = &l->transfer->shape;
	const struct arena *a = &l->run.arena;
	int e = 0;

	for (uint64_t number = first; e == 0 && number < first + n; number++) {
		uint64_t offset = place_in_region(&s->places, shape_place(s, number));

		pattern_poison(a->view_rx + offset, s->size);
		e = arena_push(a, offset, s->size);
	}
	return e;
}

int transfer_ready_target(struct lane *l) {
	const struct shape *s = &l->transfer->shape;

	return l->job.op == OP_READ ? fill(l, 0, s->batch * s->turns) : poison(l, 0, s->batch * s->turns);
}

int transfer_ready_batch(struct lane *l) {
	const uint32_t batch = l->transfer->shape.batch;

	return l->job.op == OP_READ ? poison(l, l->sequence, batch) : fill(l, l->sequence, batch);
}

/*
 * One transfer, looked at again for a while where it may come into view late.
 * Not once one has stayed wrong: a path that damages them all must be called corrupted,
 * before the initiator calls a target dead that looks at each for so long.
 */
static int check_one(struct lane *l, uint64_t number) {
	const struct shape *s = &l->transfer->shape;
	const struct arena *a = &l->run.arena;
	const uint32_t place = shape_place(s, number);
	const uint64_t offset = place_in_region(&s->places, place), deadline = monotonic_ns() + VISIBLE_NS;
	struct integrity found;
	bool good;
	int e;

	do {
		found = l->integrity;
		e = arena_pull(a, offset, s->size);
		if (e < 0)
			return e;
		good = pattern_check(&found, a->view_rx + offset, s->size, l->job.op == OP_READ ? place : number);
	} while (!good && l->run.session->level < LEVEL_DELIVERY && l->integrity.bad_bytes == 0 &&
		 monotonic_ns() < deadline);
	l->integrity = found;
	return 0;
}

int transfer_check(struct lane *l, uint64_t sequence) {
	const struct shape *s = &l->transfer->shape;
	int e = 0;

	for (uint32_t t = 0; e == 0 && t < s->batch; t++)
		e = check_one(l, sequence + t);
	return e < 0 || l->job.op == OP_READ ? e : poison(l, sequence, s->batch);
}

uint64_t transfer_patience(const struct transfer *x, uint32_t batches) {
	return x->job.timeout_ns +
	       (x->job.verify ? verify_takes(shape_bytes(&x->shape) * batches * x->n_lanes) : 0);
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
		e = control_expect(x->control, FRAME_CHECKED, transfer_patience(x, 1), NULL);
	if (e < 0)
		atomic_store(&x->stop, true);
	(void) pthread_mutex_unlock(&x->control_lock);
	return e;
}
