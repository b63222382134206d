/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency, written once over every backend.
 *
 * half_round_trip: the client sends, the server answers each message, the client stops the clock when the answer
 * is there. A lost message (UC, UD) is no sample: the phase then ends with no progress, as when the peer is gone.
 * completion: the client posts and stops the clock at the local completion; the server only makes progress.
 */
#include "pace.h"
#include "run.h"

/* Two places at a time, so that an answer may still be in one while the next is lent. */
enum { LATENCY_WINDOW = 2 };

/* Places are taken in turn: two, or with --footprint some other power of two. */
static inline uint32_t slot_of(const struct run *r, uint64_t message) {
	return (uint32_t) message & (r->arena.slots - 1);
}

/* The backend is full: takes what is complete. Apart from post(), whose path it would lengthen for every message. */
static __attribute__((noinline)) int make_room(struct run *r) {
	struct completion c[RUN_COMPLETIONS];
	int n;

	n = run_completions(r, c, true);
	for (int i = 0; i < n; i++) {
		if (c[i].kind != COMPLETION_LOCAL)
			return failure(-EPROTO, EXIT_PEER, "%s answered a message that was not sent yet",
				       r->control->peer_name);
		r->busy[c[i].slot] = false;
	}
	return n;
}

/* Posts, making room when the backend is full. */
static inline int post(struct run *r, const struct work *w, bool *ret_pending) {
	int e;

	for (;;) {
		e = r->backend->post(r->session, w);
		if (likely(e >= 0)) {
			*ret_pending = e == 0;
			return 0;
		}
		if (e == -EAGAIN)
			e = make_room(r);
		if (e < 0)
			return e;
	}
}

/* Waits for one completion of a kind; what else completes meanwhile is noted. */
static inline int await(struct run *r, enum completion_kind kind, uint32_t *ret_slot) {
	struct completion c[RUN_COMPLETIONS];

	for (;;) {
		int n = run_completions(r, c, true), found = -1;

		if (unlikely(n < 0))
			return n;
		/* Nearly always the one that is waited for, alone. */
		if (likely(n == 1 && kind == COMPLETION_RECEIVE && c[0].kind == kind)) {
			*ret_slot = c[0].slot;
			return 0;
		}
		for (int i = 0; i < n; i++) {
			if (c[i].kind == COMPLETION_LOCAL)
				r->busy[c[i].slot] = false;
			if (c[i].kind == kind)
				found = i;
		}
		if (found >= 0) {
			*ret_slot = c[found].slot;
			return 0;
		}
	}
}

/* A slot whose last work is still running must be waited for: a rendezvous may end after its answer came. */
static int take_slot(struct run *r, uint32_t slot) {
	uint32_t done;
	int e;

	while (unlikely(r->busy[slot])) {
		e = await(r, COMPLETION_LOCAL, &done);
		if (e < 0)
			return e;
	}
	return 0;
}

/* Sends message `i` and waits until it counts as arrived, or its answer has come in *slot. */
static inline int exchange(struct run *r, const struct work *w, uint32_t *slot) {
	bool pending = false;
	int e;

	e = post(r, w, &pending);
	if (unlikely(e < 0))
		return e;
	r->busy[w->slot] = pending;
	if (!r->phase.half_round_trip)
		return pending ? await(r, COMPLETION_LOCAL, slot) : 0;
	/* Lends the place of the last answer again while this message is under way. */
	if (!r->lent[*slot % LATENCY_WINDOW]) {
		e = run_lend_next(r, *slot);
		if (unlikely(e < 0))
			return e;
		r->lent[*slot % LATENCY_WINDOW] = true;
	}
	e = await(r, COMPLETION_RECEIVE, slot);
	r->lent[*slot % LATENCY_WINDOW] = false;
	return e;
}

static int verify_exchange(struct run *r, uint32_t sent, uint32_t received, uint64_t i) {
	if (r->phase.half_round_trip)
		return verify_received(r, received, i);
	return verify_is_deferred(r) ? verify_ask(r, i, 1) : verify_local(r, sent, i);
}

static int client_loop(struct run *r) {
	const bool verify = r->job->verify;
	const uint64_t count = r->phase.count ? r->phase.count : UINT64_MAX;
	struct work w = { .op = r->job->op, .size = r->phase.size, .notify = r->phase.half_round_trip,
			  .operand = atomic_bits(r->job->atomic_type, 1) };
	struct histogram *h = r->interval;
	struct pace pace;
	uint32_t received = 0;
	uint64_t i, t0, t1, late = 0, stood = 0;
	int e;

	pace_begin(&pace, r);
	const bool barrier = r->job->barrier, apart = verify || barrier || pace_active(&pace);
	uint64_t *const samples = r->outcome.samples;
	t0 = clock_ticks(&r->clock);
	for (i = 0; i < count; i++) {
		w.slot = slot_of(r, i);
		e = take_slot(r, w.slot);
		if (e < 0)
			return e;
		if (verify) {
			e = verify_fill(r, w.slot, i, &w);
			if (e < 0)
				return e;
		}
		/* Before the gap, so that the control connection is quiet again when the message goes. */
		if (barrier) {
			e = run_barrier(r);
			if (e < 0)
				return e;
		}
		/* One reading an iteration holds only where nothing happens between two messages. */
		if (apart) {
			const uint64_t free_at = t0;

			t0 = pace_next(&pace, r, &late);
			stood = MIN(late, t0 - free_at);
			/*
			 * Whoever is told to stop while it waits sends nothing before its time;
			 * behind a barrier the other end awaits it.
			 */
			if (unlikely(run_is_to_stop()) && !barrier && run_event(r, t0, 0))
				break;
		}
		e = exchange(r, &w, &received);
		if (unlikely(e < 0))
			return e;
		t1 = clock_ticks(&r->clock);
		/*
		 * Waiting for its turn is not half of anything: it counts whole,
		 * also where the sum is halved at output.
		 */
		uint64_t ticks = t1 - t0;
		if (apart)
			ticks += r->phase.half_round_trip ? 2 * late : late;
		uint64_t ns = clock_ns(&r->clock, ticks);
		histogram_record(h, ns);
		r->outcome.messages = i + 1;
		/*
		 * Also of this end, as where it is not given a processor: it was due, and nothing else was waited for.
		 */
		if (unlikely(t1 - t0 + stood >= r->stall_ticks))
			run_note_stall(r, clock_ns(&r->clock, t1 - t0 + stood));
		if (samples)
			samples[i] = ns;
		if (verify) {
			e = verify_exchange(r, w.slot, received, i);
			if (e < 0)
				return e;
		}
		t0 = t1;
		if (unlikely(t1 >= r->next_event)) {
			if (run_event(r, t1, 0))
				break;
			t0 = clock_ticks(&r->clock); /* printing is not latency */
		}
	}
	r->outcome.skipped = pace.skipped;
	r->outcome.overloaded = pace_is_behind(&pace, clock_ticks(&r->clock));
	return r->event_error;
}

int latency_client(struct run *r) {
	int e;

	e = run_lend_all(r, r->phase.half_round_trip ? LATENCY_WINDOW : 0);
	if (e < 0)
		return e;
	if (r->job->report_all && !r->phase.warmup) {
		r->outcome.samples = calloc(r->phase.count, sizeof(uint64_t));
		if (!r->outcome.samples)
			return failure(-ENOMEM, EXIT_HOST, "no memory for %llu samples of --report-all",
				       (unsigned long long) r->phase.count);
	}
	e = client_loop(r);
	r->outcome.elapsed_ns = clock_ns(&r->clock, clock_ticks(&r->clock) - r->begin);
	histogram_add(r->total, r->interval);
	histogram_reset(r->interval);
	return e;
}

/* Answers message `i`, which came in `slot`; the answer carries the same pattern. */
static int answer(struct run *r, uint32_t slot, uint64_t i) {
	struct work w = { .op = r->job->op, .slot = slot_of(r, i), .size = r->phase.size,
			  .notify = op_is_write(r->job->op) };
	bool pending = false;
	int e;

	e = take_slot(r, w.slot);
	if (e < 0)
		return e;
	if (r->job->verify) {
		e = verify_received(r, slot, i);
		if (e == 0)
			e = verify_fill(r, w.slot, i, &w);
		if (e < 0)
			return e;
	}
	e = post(r, &w, &pending);
	if (e < 0)
		return e;
	r->busy[w.slot] = pending;
	/* Lent again only now: the answer is what the client waits for. */
	return run_lend_next(r, slot);
}

int latency_server(struct run *r) {
	struct completion c[RUN_COMPLETIONS];
	bool solo = r->backend->facts->flags & BACKEND_SOLO;
	int e, n;

	if (solo || !r->phase.half_round_trip)
		return run_wait_peer(r, FRAME_FINISH);
	while (!r->peer_finished || r->outcome.received < r->peer_count) {
		n = run_completions(r, c, true);
		if (n < 0)
			return n;
		/*
		 * All places first: an answer may wait for one whose completion came in this batch, after the message.
		 */
		for (int i = 0; i < n; i++)
			if (c[i].kind == COMPLETION_LOCAL)
				r->busy[c[i].slot] = false;
		for (int i = 0; i < n; i++) {
			if (c[i].kind == COMPLETION_LOCAL)
				continue;
			e = answer(r, c[i].slot, r->outcome.received);
			if (e < 0)
				return e;
			r->outcome.received++;
			run_await_barrier(r);
		}
	}
	return 0;
}
