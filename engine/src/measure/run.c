/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <stdio.h>

#include "backends/registry.h"
#include "bounce.h"
#include "host/footprint.h"
#include "interval.h"
#include "place.h"

/*
 * How often a busy side looks at the control connection while nothing arrives. A look is a system call (about 0.3 us);
 * a poll of a backend takes 0.1 to 0.5 us. An echo that expects traffic looks about once a millisecond,
 * where it disturbs nobody; a side that can only be told by the peer looks after some tens of microseconds,
 * which are as many polls as an echo's where a poll takes some 20 ns.
 */
enum {
	LOOK_SELDOM = 4096,
	LOOK_OFTEN = 64,
};

/*
 * In the watchdog's thread, while the main one is lost in a library:
 * the lines that it would have written are written here.
 */
static void stalled(void *userdata) {
	struct run *r = userdata;

	failure_reset();
	(void) failure(-ETIMEDOUT, EXIT_PEER, "lost %s: a call of the %s backend does not come back; "
		       "the library waits for a peer that hangs or is gone; check the peer's log",
		       r->control->peer_name, r->backend->facts->name);
	r->traffic = r->events > 0;
	r->outcome.cpu = cpu_since(&r->outcome.cpu); /* run_begin() has left there when it began */
	if (r->on_stall)
		r->on_stall(r);
	_exit(EXIT_PEER);
}

/* When this process was asked to end; 0: it was not. */
static _Atomic uint64_t stop_ns;

void run_ask_to_stop(void) {
	uint64_t never = 0;

	/* The first word counts: asked again, it must not wait for longer. */
	(void) atomic_compare_exchange_strong(&stop_ns, &never, monotonic_ns());
}

bool run_is_to_stop(void) {
	return atomic_load_explicit(&stop_ns, memory_order_relaxed) != 0;
}

int run_open_memory(const struct job *job, const struct backend *backend, const struct memory_kind kinds[2],
		    struct arena *ret) {
	const struct queues queues = { .n = job->queue_pairs, .run = job_run(job) };
	const uint64_t size = job_largest_size(job);
	const uint32_t window = backend->slots ? backend->slots(job) : job_least_window(job);

	return job->footprint
		? arena_open_scattered(ret, job->footprint, size, window, &queues, job->verify, kinds)
		: arena_open(ret, size, window, &queues, job->verify, kinds);
}

int run_open(struct run *r, const struct open_arguments *arguments, struct control *control) {
	const struct job *job = arguments->job;
	struct memory_kind kinds[] = { job_tx_memory(job), job_rx_memory(job) };
	struct open_arguments a = *arguments;
	struct place place;
	int e;

	*r = (struct run) {
		.job = job,
		.role = arguments->role,
		.control = control,
		.backend = backend_find(job->backend),
		.sleep_ns = RUN_SLEEP_NS,
		.stall_ticks = UINT64_MAX,
	};
	e = clock_open(job->clock, job->ignore_mismatch, &r->clock);
	if (e < 0)
		return e;
	/* Before anything is allocated: all of it shall be near. */
	e = place_open(arguments, &place);
	if (e == 0)
		e = place_sit(&place, 0, 0);
	if (e < 0)
		return e;
	e = place_memory(&place, 0, kinds, ELEMENTSOF(kinds));
	if (e == 0)
		e = run_open_memory(job, r->backend, kinds, &r->arena);
	if (e < 0)
		return e;
	r->placed = place_say(&place, 0, &r->arena);
	r->busy = calloc(r->arena.slots, sizeof(*r->busy));
	r->lent = calloc(r->arena.window, sizeof(*r->lent));
	r->arrivals = calloc(job->queue_pairs, sizeof(*r->arrivals));
	r->words = calloc(r->arena.slots, sizeof(*r->words));
	if (!r->busy || !r->lent || !r->arrivals || !r->words)
		return failure(-ENOMEM, EXIT_HOST, "no memory for %u slots", r->arena.slots);
	if (r->role == ROLE_CLIENT && (histogram_new(&r->total) < 0 || histogram_new(&r->interval) < 0))
		return failure(-ENOMEM, EXIT_HOST, "no memory for two histograms (%zu KiB)",
			       2 * sizeof(struct histogram) / 1024);
	a.arena = &r->arena;
	a.wake_fd = control->fd;
	e = job->bounce ? bounce_open(&a, &r->backend, &r->session) : r->backend->open(&a, &r->session);
	if (e < 0)
		return e;
	for (unsigned i = 0; i < r->arena.n_regions; i++)
		r->session->simulated |= gpu_is_simulated(r->arena.regions[i].gpu);
	return watchdog_start(&r->watchdog, &r->heart, job->timeout_ns, control->fd, stalled, r);
}

void outcome_done(struct outcome *o) {
	json_decref(o->intervals);
	free(o->samples);
	*o = (struct outcome) { 0 };
}

void run_close(struct run *r) {
	/* Closing may wait for a peer, too; all results are written by then. */
	r->on_stall = NULL;
	r->watchdog.armed = true;
	if (r->backend)
		r->session = r->backend->close(r->session);
	watchdog_stop(&r->watchdog);
	r->total = histogram_free(r->total);
	r->interval = histogram_free(r->interval);
	outcome_done(&r->outcome);
	arena_close(&r->arena);
	free(r->busy);
	free(r->lent);
	free(r->arrivals);
	free(r->words);
	*r = (struct run) { 0 };
}

/* A pace that leaves long pauses is no hang, on neither side. */
static uint64_t patience(const struct run *r) {
	const struct job *job = r->job;
	double per_second = job->rate_unit == RATE_BITS ? job->rate / 8 / (double) r->phase.size : job->rate;
	double period_ns = job->rate_unit == RATE_NONE ? 0 : (double) NSEC_PER_SEC / per_second;

	/* Bounded, so that the sum cannot wrap: each of the three stays below 2^62. */
	return job->timeout_ns + job->gap_ns + (uint64_t) MIN(period_ns, 0x1p62);
}

void run_begin(struct run *r) {
	const struct job *job = r->job;
	bool expects = r->phase.half_round_trip || (r->role == ROLE_SERVER && op_takes_receive(job->op));

	outcome_done(&r->outcome);
	r->peer_finished = r->peer_received = r->peer_done = r->peer_met = r->blind = false;
	r->peer_count = r->peer_elapsed_ns = 0;
	r->idle = r->stashed = 0;
	r->control_every = (expects && job->kind == KIND_LATENCY) || r->session->cheap_poll ? LOOK_SELDOM : LOOK_OFTEN;
	run_await_barrier(r);
	r->events_seen = r->events;
	r->begin_ns = r->progress_ns = r->waiting_ns = monotonic_ns();
	r->stall.start_ns = r->under_way = 0;
	r->patience_ns = patience(r);
	memset(r->busy, 0, r->arena.slots * sizeof(*r->busy));
	memset(r->arrivals, 0, job->queue_pairs * sizeof(*r->arrivals));
	if (r->total) {
		histogram_reset(r->total);
		histogram_reset(r->interval);
	}
	if (r->backend->begin)
		r->backend->begin(r->session, r->phase.size);
	cpu_now(&r->outcome.cpu);
	intervals_begin(r);
	/* Later than every deadline that is looked at: those know better what is wrong. */
	r->watchdog.limit_ns = r->patience_ns + NSEC_PER_SEC;
	r->watchdog.armed = true;
}

void run_end(struct run *r) {
	struct cpu_time started = r->outcome.cpu;

	r->watchdog.armed = false;
	r->outcome.cpu = cpu_since(&started);
	r->outcome.end_ns = monotonic_ns();
	(void) clock_gettime(CLOCK_REALTIME, &r->outcome.ended);
	/*
	 * After the warm-up, or else after the first phase:
	 * what a library allocates with its first messages is there by then.
	 */
	if (!r->settled && r->job->duration_ns >= RUN_SETTLE_NS)
		footprint_settle();
	r->settled = true;
}

/*
 * The slow half of run_lend(). Providers say -EAGAIN only until their own queue has moved, which posting makes it do.
 */
int run_lend_again(struct run *r, uint32_t slot, int error) {
	uint64_t deadline = monotonic_ns() + r->job->timeout_ns;

	while (error == -EAGAIN && monotonic_ns() < deadline)
		error = r->backend->post_receive(r->session, slot, r->arena.slot_bytes);
	if (error >= 0)
		return 0;
	return failure(error, EXIT_INTERNAL, "cannot post a receive of %llu bytes: %s",
		       (unsigned long long) r->arena.slot_bytes, strerror(-error));
}

int run_lend_all(struct run *r, uint32_t n) {
	int e;

	for (uint32_t slot = 0; slot < n; slot++) {
		e = r->lent[slot] ? 0 : run_lend(r, slot);
		if (e < 0)
			return e;
		r->lent[slot] = true;
	}
	return 0;
}

int run_say(struct run *r, enum frame_type type, uint64_t count) {
	return control_send(r->control, type, json_pack("{s:I}", "count", (json_int_t) count));
}

/* The server answers at once: that it hears this shows that it has answered every message before. */
static int hear_barrier(struct run *r) {
	r->peer_met = true;
	if (r->role == ROLE_CLIENT)
		return 0;
	if (r->phase.half_round_trip)
		r->control_every = LOOK_SELDOM; /* a message comes next, and a look would only be in its way */
	return control_send(r->control, FRAME_BARRIER, NULL);
}

/* The peer has said something in the middle of a phase. */
static int hear(struct run *r) {
	json_t *payload = NULL;
	json_int_t count = 0;
	enum frame_type type;
	int e;

	e = control_receive(r->control, r->job->timeout_ns, &type, &payload);
	if (e < 0)
		return e;
	if (type == FRAME_BARRIER && r->job->barrier) {
		json_decref(payload);
		return hear_barrier(r);
	}
	if (type == FRAME_CHECK || type == FRAME_CHECKED || type == FRAME_DONE) {
		r->checked |= type == FRAME_CHECKED;
		r->peer_done |= type == FRAME_DONE;
		if (type == FRAME_DONE && json_unpack(payload, "{s:I}", "elapsed_ns", &count) == 0 && count > 0)
			r->peer_elapsed_ns = (uint64_t) count;
		e = type == FRAME_CHECK ? verify_answer(r, payload) : 0;
		json_decref(payload);
		return e;
	}
	e = json_unpack(payload, "{s:I!}", "count", &count);
	json_decref(payload);
	if ((type != FRAME_FINISH && type != FRAME_RECEIVED) || e < 0 || count < 0)
		return failure(-EPROTO, EXIT_PEER, "%s sent frame %d in the middle of the traffic; refused",
			       r->control->peer_name, type);
	if (type == FRAME_FINISH) {
		r->peer_finished = true;
		r->peer_count = (uint64_t) count;
	} else
		r->peer_received = true;
	return 0;
}

int run_look(struct run *r) {
	int e;

	if (!control_pending(r->control))
		return 0;
	e = hear(r);
	if (e < 0)
		return e;
	r->progress_ns = monotonic_ns();
	if (r->stall.start_ns)
		run_stall_over(r);
	return 0;
}

void run_watch_stalls(struct run *r, uint64_t after_ns) {
	/* What may be lost is waited for in vain, which is no stall. */
	if (after_ns == 0 || r->session->lossy)
		return;
	r->stall_after_ns = after_ns;
	r->stall_ticks = clock_ticks_of(&r->clock, after_ns);
	/* A sleeping end sees a stall begin when it first wakes in it. */
	r->sleep_ns = MIN(r->sleep_ns, MAX(after_ns / 4, NSEC_PER_MSEC));
}

void run_note_stall(struct run *r, uint64_t ns) {
	r->stall = (struct stall) { .start_ns = monotonic_ns() - ns, .messages = 1 };
	run_stall_over(r);
}

static uint64_t stall_ns(const struct stall *s) {
	return s->end_ns - s->start_ns;
}

void outcome_add_stall(struct outcome *o, const struct stall *s, bool first) {
	size_t kept = (size_t) MIN(o->n_stalls, (uint64_t) RUN_STALLS_MAX), least = 0;

	o->n_stalls++;
	o->stalled_ns += stall_ns(s);
	if (kept == RUN_STALLS_MAX) {
		for (size_t k = 1; k < kept; k++)
			if (stall_ns(o->stalls + k) < stall_ns(o->stalls + least))
				least = k;
		if (stall_ns(s) <= stall_ns(o->stalls + least))
			return;
		kept--;
		memmove(o->stalls + least, o->stalls + least + 1, (kept - least) * sizeof(*s));
	}
	if (first)
		memmove(o->stalls + 1, o->stalls, kept * sizeof(*s));
	o->stalls[first ? 0 : kept] = *s;
}

void run_stall_over(struct run *r) {
	struct outcome *o = &r->outcome;

	r->stall.end_ns = monotonic_ns();
	outcome_add_stall(o, &r->stall, false);
	r->stall.start_ns = 0;
}

/*
 * Where nothing is under way, as between two paced messages, there is nothing to wait for.
 * Latency times each message by itself.
 */
static void watch_for_stall(struct run *r, uint64_t now) {
	uint64_t since;

	if (r->stall_after_ns == 0 || r->stall.start_ns || r->job->kind == KIND_LATENCY)
		return;
	if (r->under_way == 0)
		r->waiting_ns = now;
	since = MAX(r->waiting_ns, r->progress_ns);
	if (now - since >= r->stall_after_ns)
		r->stall = (struct stall) { .start_ns = since, .messages = r->under_way };
}

/* Asked to end, and what is under way does not come. */
static int give_up(struct run *r) {
	uint64_t asked = atomic_load_explicit(&stop_ns, memory_order_relaxed);

	if (asked == 0 || monotonic_ns() - asked < RUN_STOP_NS)
		return 0;
	if (r->job->kind == KIND_LATENCY && r->stall_after_ns && monotonic_ns() - r->progress_ns >= r->stall_after_ns)
		run_note_stall(r, monotonic_ns() - r->progress_ns);
	if (r->stall.start_ns)
		run_stall_over(r);
	return failure_quiet(-ECANCELED, EXIT_INTERNAL, "stopped while messages to %s were outstanding",
			     r->control->peer_name);
}

int run_idle(struct run *r) {
	uint64_t now;
	int e;

	r->idle = 0;
	e = run_look(r);
	if (e < 0)
		return e;
	now = monotonic_ns();
	if (r->events != r->events_seen) {
		r->events_seen = r->events;
		r->progress_ns = now;
		if (r->stall.start_ns)
			run_stall_over(r); /* what a post has completed itself, no poll tells of */
		return 0;
	}
	e = give_up(r);
	if (e < 0)
		return e;
	watch_for_stall(r, now);
	/* Seen only by who waits, so that it costs the hot loop nothing; shorter by two looks at most. */
	if (now - r->progress_ns > r->outcome.stall_ns) {
		r->outcome.stall_ns = now - r->progress_ns;
		r->outcome.stall_start_ns = r->progress_ns - r->begin_ns;
	}
	if (r->blind || now - r->progress_ns < r->patience_ns)
		return 0;
	/*
	 * The peer is only blamed for a silence that is not this end's:
	 * who only receives hears of its own port's loss from nobody.
	 */
	e = r->backend->check ? r->backend->check(r->session) : 0;
	if (e < 0)
		return e;
	return failure(-ETIMEDOUT, EXIT_PEER, "no progress for %.1f s with %s (%s, %llu bytes): the path "
		       "to it is blocked, or it hangs%s; --timeout sets this limit", (double) r->patience_ns / 1e9,
		       r->control->peer_name, op_name((int) r->job->op), (unsigned long long) r->phase.size,
		       r->session->lossy ? ", or a message was lost, which this connection does not repeat" : "");
}

int run_wait_peer(struct run *r, enum frame_type type) {
	const bool *said = type == FRAME_FINISH ? &r->peer_finished : type == FRAME_RECEIVED ? &r->peer_received
			   : type == FRAME_DONE ? &r->peer_done : type == FRAME_BARRIER ? &r->peer_met : &r->checked;
	struct completion c[RUN_COMPLETIONS];
	/* It may be there already: not every backend's sleep ends with a word on the control connection. */
	int n = *said ? 0 : run_look(r);

	r->under_way = type == FRAME_RECEIVED;
	/*
	 * FINISH is awaited where the peer works on this end's memory alone:
	 * its host's death is found by control's keepalive.
	 */
	r->blind = type == FRAME_FINISH;
	while (!*said && n >= 0) {
		/* Polling would be for nothing, and would take a processor from whoever works. */
		if (r->blind && r->session->passive && r->job->completion == COMPLETION_BUSY) {
			control_wait(r->control, RUN_SLEEP_NS);
			n = run_idle(r);
			if (n < 0 || *said)
				break;
		}
		/* Progress first: what the peer waits for may still lie in this end's queues. */
		n = run_completions(r, c, true);
		for (int i = 0; i < n; i++) {
			/* Where messages get lost, they may also come late, when they were counted as lost. */
			if (c[i].kind == COMPLETION_RECEIVE && r->session->lossy && run_lend_next(r, c[i].slot) == 0)
				continue;
			if (c[i].kind == COMPLETION_RECEIVE)
				return failure(-EPROTO, EXIT_PEER, "%s sent more messages than it announced",
					       r->control->peer_name);
			r->busy[c[i].slot] = false; /* an answer that the peer had before this end knew */
		}
	}
	r->blind = false;
	/* A silence that was waited for in vain keeps its beginning. */
	if (n < 0)
		return n;
	r->progress_ns = monotonic_ns();
	return 0;
}

void run_await_barrier(struct run *r) {
	if (r->job->barrier && r->role == ROLE_SERVER)
		r->control_every = LOOK_OFTEN;
}

int run_barrier(struct run *r) {
	uint64_t every = r->control_every;
	int e;

	r->peer_met = false;
	e = control_send(r->control, FRAME_BARRIER, NULL);
	if (e < 0)
		return e;
	r->control_every = LOOK_OFTEN;
	e = run_wait_peer(r, FRAME_BARRIER);
	r->control_every = every;
	return e;
}
