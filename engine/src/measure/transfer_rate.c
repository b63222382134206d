/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot loop of message rates. A thread goes round the queue pairs of its one lane and keeps each full: posts a list
 * where there is room for a whole one, and counts what completions stand for. It takes no lock and divides nothing,
 * and a list costs one call of the backend, however long it is.
 */
#include "transfer.h"

/* Turns between two looks at the clock: at 20 ns each message and lists of 32, some tens of microseconds. */
enum { LOOK_TURNS = 64 };

/* Posts whole lists as far as there is room; the last of all may be shorter. */
static inline int fill(struct lane *l, struct channel *c, struct list *list) {
	const uint32_t longest = l->job.batch;

	while (c->left > 0) {
		int n;

		list->n = (uint32_t) MIN((uint64_t) MIN(longest, c->end - c->next), c->left);
		if (c->under + list->n > l->depth)
			return 0;
		list->channel = c->in_session;
		list->slot = c->next;
		list->signal = c->unsignalled + list->n >= l->job.cq_moderation || list->n == c->left;
		n = c->session->backend->lanes->post_list(c->session, list);
		if (unlikely(n <= 0))
			return n;
		c->unsignalled = list->signal ? 0 : c->unsignalled + (uint32_t) n;
		c->under += (uint32_t) n;
		c->left -= (uint32_t) n;
		l->posted += (uint32_t) n;
		l->open -= c->left == 0;
		c->next += (uint32_t) n;
		if (c->next == c->end)
			c->next = c->first;
	}
	return 0;
}

static inline int take_completions(struct lane *l, uint32_t session) {
	struct completion c[RUN_COMPLETIONS];
	int n = lane_look(l, session, c);
	uint64_t messages = 0;

	if (n <= 0)
		return n;
	for (int i = 0; i < n; i++) {
		/* A session is of all queue pairs, or each has one of its own, of which it is number 0. */
		l->channels[session + c[i].channel].under -= 1 + c[i].more;
		messages += 1 + c[i].more;
	}
	l->batches += messages;
	lane_progress(l, messages);
	return 0;
}

/* The goal of a thread, shared out among its queue pairs; without one it works until the time is over. */
static void share_out(struct lane *l, uint64_t goal) {
	l->open = 0;
	l->posted = 0;
	for (uint32_t i = 0; i < l->n_channels; i++) {
		struct channel *c = l->channels + i;

		c->left = goal ? goal / l->n_channels + (i < goal % l->n_channels) : UINT64_MAX;
		l->open += c->left > 0;
		c->next = c->first;
	}
}

/* The time is over: where completions are still to be asked for, one more list does it. */
static void end_soon(struct lane *l) {
	l->open = 0;
	for (uint32_t i = 0; i < l->n_channels; i++) {
		struct channel *c = l->channels + i;

		c->left = c->unsignalled > 0 ? 1 : 0;
		l->open += (uint32_t) c->left;
	}
}

/* Now and then. */
static int look(struct lane *l, bool *over) {
	const struct transfer *x = l->transfer;

	if (atomic_load_explicit(&x->stop, memory_order_relaxed))
		return -ECANCELED;
	if (!*over && !x->goal && clock_ticks(&l->run.clock) - x->start_ticks >= x->duration_ticks) {
		*over = true;
		end_soon(l);
	}
	return 0;
}

int rate_drive(struct thread *t) {
	struct transfer *x = t->transfer;
	struct lane *l = x->lanes[t->number];
	struct list list = { .op = l->op, .size = x->shape.size };
	const uint32_t every = l->sleeps ? 1 : LOOK_TURNS;
	bool over = false;
	int e = 0;

	share_out(l, x->goal);
	l->busy = true;
	for (uint32_t turn = 0; e == 0 && (l->open > 0 || l->batches < l->posted); turn++) {
		for (uint32_t i = 0; e == 0 && i < l->n_channels; i++)
			e = fill(l, l->channels + i, &list);
		for (uint32_t i = 0; e == 0 && i < l->n_sessions; i++)
			e = take_completions(l, i);
		if (e == 0 && l->sleeps)
			e = thread_sleep(t);
		if (e == 0 && turn % every == 0)
			e = look(l, &over);
	}
	l->ended = clock_ticks(&l->run.clock);
	l->moved_batches += l->batches;
	l->busy = e < 0;
	return e;
}
