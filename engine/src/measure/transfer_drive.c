/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot loop of batches. A thread goes round its lanes: posts what there is room for,
 * takes completions, and when a batch is complete notes its time and begins the next.
 * It takes no lock and writes nothing that another thread's hot path reads.
 */
#include <sched.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "base/message.h"
#include "transfer.h"

/* How much later than the end of its queues a client's last word may come: a round trip and some scheduling. */
#define LAST_WORD_NS NSEC_PER_SEC

/* Whether the list ends with this piece: its last one's completion must come by itself, and rings the doorbell. */
static inline bool ends_list(const struct lane *l, const struct channel *c) {
	if (c->next + 1 == c->end || c->under + 1 == l->depth)
		return true;
	return l->consecutive && (c->next + 1) % l->transfer->shape.chunks == 0;
}

/*
 * Posts what the channel has room for. A queue that is half full waits:
 * what is posted by the way of single completions would be lists of single work requests, with a doorbell each.
 */
static inline int post_channel(struct lane *l, struct channel *c) {
	const struct shape *s = &l->transfer->shape;
	struct work w = { .op = l->op };
	int e;

	if (c->next == c->end || c->under > l->depth / 2)
		return 0;
	while (c->next < c->end && c->under < l->depth) {
		bool last = ends_list(l, c);

		if (unlikely(l->resolves))
			lane_resolve(l, c->next);
		w.slot = l->first + c->next;
		w.size = shape_piece_size(s, c->next);
		w.flush = last;
		w.more = !last;
		e = c->session->backend->post(c->session, &w);
		if (e == -EAGAIN)
			return 0; /* the provider's own queue is shorter: it has room again after some completions */
		if (unlikely(e < 0))
			return e;
		c->next++;
		c->under += e == 0;
		l->done += e == 1;
	}
	return 0;
}

static int begin_batch(struct lane *l) {
	const struct job *job = &l->job;
	int e = 0;

	if (job->verify)
		e = transfer_ready_batch(l);
	if (e < 0)
		return e;
	l->done = 0;
	l->busy = true;
	l->began = clock_ticks(&l->run.clock);
	for (uint32_t i = 0; i < l->n_channels; i++) {
		struct channel *c = l->channels + i;

		c->next = c->first;
	}
	return 0;
}

static int end_batch(struct lane *l) {
	struct transfer *x = l->transfer;
	int e = 0;

	l->ended = clock_ticks(&l->run.clock);
	l->busy = false;
	l->batches++;
	l->moved_batches++;
	if (!x->warming)
		histogram_record(l->run.total, clock_ns(&l->run.clock, l->ended - l->began));
	if (l->job.verify)
		e = l->op == OP_READ ? transfer_check(l, l->sequence) : transfer_ask(l);
	l->sequence += x->shape.batch;
	/* What is not looked at again must not wake the thread, which has no time to sleep now. */
	if (l->sleeps)
		alarms_clear(l->alarms, lane_alarms(l));
	l->thread->awake = true;
	l->first += l->pieces;
	if (l->first == shape_all_pieces(&x->shape))
		l->first = 0;
	if (!x->warming && l->batches == x->goal)
		atomic_fetch_sub(&x->left, 1);
	return e;
}

static inline int take_completions(struct lane *l, uint32_t session) {
	struct completion c[RUN_COMPLETIONS];
	int n = lane_look(l, session, c);

	if (n <= 0)
		return n;
	for (int i = 0; i < n; i++) {
		const uint32_t piece = c[i].slot - l->first;

		if (unlikely(c[i].kind != COMPLETION_LOCAL || piece >= l->pieces))
			return failure(-EPROTO, EXIT_PEER, "%s: a message came that no transfer has", l->job.backend);
		l->channels[l->channel_of[piece]].under--;
	}
	l->done += (uint32_t) n;
	lane_progress(l, (uint64_t) n);
	return 0;
}

/* Does what there is to do for the batch under way, without waiting. */
static inline int advance(struct lane *l) {
	int e;

	for (uint32_t i = 0; i < l->n_channels; i++) {
		e = post_channel(l, l->channels + i);
		if (unlikely(e < 0))
			return e;
	}
	for (uint32_t i = 0; i < l->n_sessions && l->done < l->pieces; i++) {
		e = take_completions(l, i);
		if (unlikely(e < 0))
			return e;
	}
	return l->done == l->pieces ? end_batch(l) : 0;
}

/* Whether a lane that has just ended a batch is through with this part of the phase. */
static inline bool is_over(const struct transfer *x, const struct lane *l) {
	if (x->goal)
		return x->warming ? l->batches >= x->goal : atomic_load_explicit(&x->left, memory_order_relaxed) == 0;
	return l->ended - x->start_ticks >= x->duration_ticks;
}

static int drive(struct thread *t) {
	struct transfer *x = t->transfer;
	bool busy = true;
	int e;

	while (busy) {
		busy = false;
		for (uint32_t i = t->number; i < x->n_lanes; i += x->job.threads) {
			struct lane *l = x->lanes[i];

			e = l->busy || is_over(x, l) ? 0 : begin_batch(l);
			if (e == 0 && l->busy)
				e = advance(l);
			if (unlikely(e < 0))
				return e;
			busy |= l->busy || !is_over(x, l);
		}
		e = x->lanes[0]->sleeps && busy ? thread_sleep(t) : 0;
		if (unlikely(e < 0))
			return e;
		if (unlikely(atomic_load_explicit(&x->stop, memory_order_relaxed)))
			return -ECANCELED;
	}
	return 0;
}

/*
 * All begin together: the last one to come says when that is, for all.
 * Nobody sleeps for the others: the first would measure alone while they wake up.
 */
static int meet(struct transfer *x) {
	if (atomic_fetch_add(&x->ready, 1) + 1 == x->job.threads) {
		x->start_ticks = clock_ticks(&x->lanes[0]->run.clock);
		atomic_store(&x->begun, true);
	}
	while (!atomic_load(&x->begun)) {
		if (atomic_load(&x->stop))
			return -ECANCELED;
		(void) sched_yield();
	}
	return 0;
}

static void begin_part(struct thread *t) {
	struct transfer *x = t->transfer;

	for (uint32_t i = t->number; i < x->n_lanes; i += x->job.threads) {
		x->lanes[i]->batches = 0;
		x->lanes[i]->ended = x->start_ticks;
	}
}

/* Tells who waits for the threads. */
static void leave(struct thread *t) {
	struct transfer *x = t->transfer;
	const uint64_t one = 1;

	if (t->error < 0 && t->error != -ECANCELED)
		atomic_store(&x->stop, true);
	atomic_fetch_sub(&x->running, 1);
	(void) !write(x->done_fd, &one, sizeof(one));
}

static int sit(const struct thread *t) {
	return place_sit(&t->transfer->place, t->number, t->number);
}

int thread_sleep(struct thread *t) {
	const bool awake = t->awake;

	t->awake = false;
	return awake ? 0 : backend_sleep(t->alarms, t->n_alarms, RUN_SLEEP_NS);
}

void *transfer_initiate(void *thread) {
	struct thread *t = thread;

	t->error = sit(t);
	if (t->error == 0)
		t->error = meet(t->transfer);
	if (t->error == 0) {
		begin_part(t);
		t->error = t->transfer->job.kind == KIND_RATE ? rate_drive(t) : drive(t);
	}
	leave(t);
	return NULL;
}

void *transfer_attend(void *thread) {
	struct thread *t = thread;
	struct transfer *x = t->transfer;
	struct completion c[RUN_COMPLETIONS];
	int n;

	failure_keep_apart(true);
	n = sit(t);
	while (n >= 0 && !atomic_load_explicit(&x->stop, memory_order_relaxed)) {
		for (uint32_t i = t->number; n >= 0 && i < x->n_lanes; i += x->job.threads)
			for (uint32_t k = 0; n >= 0 && k < x->lanes[i]->n_sessions; k++)
				n = lane_look(x->lanes[i], k, c);
		if (n >= 0 && x->lanes[0]->sleeps)
			n = thread_sleep(t);
	}
	t->error = MIN(n, 0);
	t->code = failure_code();
	(void) snprintf(t->text, sizeof(t->text), "%s", failure_text());
	leave(t);
	return NULL;
}

int transfer_why(struct transfer *x) {
	int e = 0;

	control_wait(x->control, LAST_WORD_NS);
	if (control_pending(x->control))
		return 0;
	transfer_stop(x);
	for (uint32_t i = 0; e == 0 && i < x->job.threads; i++) {
		const struct thread *t = x->threads + i;

		if (t->error < 0)
			e = failure(t->error, t->code, "%s", t->text);
	}
	return e;
}

int transfer_start(struct transfer *x, void *(*body)(void *)) {
	uint64_t earlier;

	while (read(x->done_fd, &earlier, sizeof(earlier)) > 0)
		;
	atomic_store(&x->stop, false);
	atomic_store(&x->begun, false);
	atomic_store(&x->ready, 0);
	atomic_store(&x->left, x->n_lanes);
	atomic_store(&x->running, x->job.threads);
	for (uint32_t i = 0; i < x->job.threads; i++) {
		struct thread *t = x->threads + i;
		int e;

		t->transfer = x;
		t->number = i;
		t->error = 0;
		t->text[0] = '\0';
		t->awake = false;
		e = pthread_create(&t->id, NULL, body, t);
		if (e) {
			atomic_store(&x->stop, true);
			return failure(-e, EXIT_HOST, "cannot start thread %u of %u: %s; lower --threads", i + 1,
				       x->job.threads, strerror(e));
		}
		t->started = true;
	}
	return 0;
}

void transfer_stop(struct transfer *x) {
	atomic_store(&x->stop, true);
	x->watchdog.armed = true;
	transfer_join(x);
	x->watchdog.armed = false;
}

void transfer_join(struct transfer *x) {
	for (uint32_t i = 0; x->threads && i < x->job.threads; i++)
		if (x->threads[i].started) {
			(void) pthread_join(x->threads[i].id, NULL);
			x->threads[i].started = false;
		}
}
