/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of one measurement while it runs. Client and server hold the same structure; the tests (test_latency.c,
 * test_bandwidth.c) are written over it, the backend's vtable and the control connection.
 *
 * A phase is warm-up or measurement of one size. The client leads it:
 *     START -> STARTED, traffic, FINISH {count}, RECEIVED where messages arrive, DONE -> RESULT.
 */
#pragma once

#include "backends/backend.h"
#include "control/control.h"
#include "host/cpu.h"
#include "stats/histogram.h"
#include "memory/memory.h"
#include "host/placement.h"
#include "verify.h"
#include "watchdog.h"

enum {
	RUN_COMPLETIONS = 32,           /* taken from the backend at a time */
	RUN_RATE_BACKLOG_S = 1,         /* a pacer this far behind gives the rest up, and says overloaded */
	RUN_INTERVALS_MAX = 86400,      /* kept for the record: a day of seconds */
	/* of one phase with their times; further ones are counted: 50 ms each are half of the shortest useful minute */
	RUN_STALLS_MAX = 64,
};

/* Windows for the peak and the minimum of a bandwidth; short enough for ten in the shortest useful second. */
#define RUN_WINDOW_NS (100 * NSEC_PER_MSEC)

/* How often a side that always has something to do looks at the control connection:
 * where a backend needs no peer to go on, nothing else tells of its death. */
#define RUN_LOOK_NS (250 * NSEC_PER_MSEC)

/* A run that is to stop waits so long for what is under way: half of the second in which a soak has to end. */
#define RUN_STOP_NS (500 * NSEC_PER_MSEC)

/*
 * Runs that are planned for so long are looked at for growth (a soak's leaks are told by the hour);
 * shorter ones need not be ready for it.
 */
#define RUN_SETTLE_NS (60 * NSEC_PER_SEC)

/* How long a sleeping side may stay unaware of its peer's death when no wake-up reaches it. */
#define RUN_SLEEP_NS (100 * NSEC_PER_MSEC)

/*
 * A message that may be lost without an error (session.lossy) counts as lost when its sender has said how many there
 * were, and none has come for this long: a hundred times the worst scheduling delay seen on a busy virtual machine.
 */
#define RUN_LOSS_NS (500 * NSEC_PER_MSEC)

struct phase {
	uint64_t size;
	bool warmup;
	bool half_round_trip;           /* the server answers each message; else it only makes progress (or receives) */
	uint64_t count;                 /* messages; 0: until the time is over */
	uint64_t duration_ns;           /* where count is 0 */
};

/* Messages were under way, and for longer than run.stall_after_ns none of them was completed. */
struct stall {
	uint64_t start_ns, end_ns;      /* monotonic */
	uint64_t messages;              /* under way */
};

/* What one end found out in one phase. */
struct outcome {
	uint64_t messages;              /* sent or posted here, complete */
	uint64_t received;
	/* --verify: writes of an unreliable connection that never came; others follow from the counts */
	uint64_t lost;
	uint64_t elapsed_ns;
	struct cpu_time cpu;
	struct integrity integrity;
	double peak_bytes_per_s, min_bytes_per_s;       /* of whole windows; negative: fewer than two */
	uint64_t skipped;               /* by a pacer that could not keep up */
	bool overloaded;                /* it skipped, or ended well behind */
	uint64_t idle_ns;               /* waited here for messages that never came: no part of the time measured */
	/* the longest time without any completion, and when it began in this phase */
	uint64_t stall_ns, stall_start_ns;
	uint64_t end_ns;                /* when the traffic ended, monotonic, and by the clock on the wall */
	struct timespec ended;
	struct stall stalls[RUN_STALLS_MAX];    /* the longest of n_stalls, by time */
	uint64_t n_stalls, stalled_ns;
	json_t *intervals;              /* array; NULL: none asked for */
	uint64_t *samples;              /* --report-all: ns as observed, messages of them */
};

struct run {
	const struct job *job;
	const struct backend *backend;
	struct session *session;
	struct control *control;
	struct arena arena;
	struct clock clock;
	enum role role;
	struct phase phase;
	struct outcome outcome;
	struct histogram *total, *interval;     /* client, latency */

	/* What the peer has said in this phase. */
	bool peer_finished, peer_received, peer_done, peer_met;
	uint64_t peer_count;
	uint64_t peer_elapsed_ns;       /* server: what the client has timed, once it is done */

	/* Progress. */
	uint64_t idle;                  /* polls without a completion since the last one */
	uint64_t control_every;         /* look at the control connection after so many */
	uint64_t events, events_seen;   /* completions ever, and at the last look */
	uint64_t begin_ns;              /* when this phase began, by the same clock as progress_ns */
	uint64_t progress_ns;           /* when events last grew */
	/* how long they may not grow: --timeout, and what the pace leaves between two messages */
	uint64_t patience_ns;
	uint64_t stall_after_ns;        /* without a completion so long, although some are under way; 0: nobody asks */
	uint64_t stall_ticks;           /* the same for a round trip, by the clock; UINT64_MAX: nobody asks */
	uint64_t under_way;             /* bandwidth: messages whose completion is waited for */
	uint64_t waiting_ns;            /* since when, as the looks of a waiting end see it */
	struct stall stall;             /* the present one; start_ns 0: none */
	bool keeps_pace;                /* bandwidth: the next phase goes on where the pace of this one ended, */
	uint64_t pace_mark;             /* at this time (pace.h); 0: it begins anew */
	uint64_t sleep_ns;              /* the longest sleep in event mode */
	bool settled;                   /* what is allocated is resident: growth from here on is growth */
	bool blind;                     /* what the peer does is not seen here, so that nothing seen means nothing */
	_Atomic uint64_t heart;         /* calls of the backend that came back */
	struct watchdog watchdog;
	void (*on_stall)(struct run *r);        /* client: writes what is known of the size; NULL: nothing to write */
	/* a message of the measurement has been completed: a loss is now the fabric's */
	bool traffic;

	/*
	 * Time marks, in ticks of the clock; next_event is the earliest of the others, so that the loop compares once.
	 */
	uint64_t begin, end, next_event, next_interval, next_window, next_look;
	int event_error;                /* what a look has found; run_event() then says that the time is over */
	uint64_t window_bytes, interval_bytes, window_start, interval_start;
	void (*on_interval)(struct run *r, json_t *interval);   /* client: prints the line; NULL: none */

	bool *busy;                     /* transmit slots whose work is not complete; slots are taken in turn */
	bool *lent;                     /* receives that the backend holds, by slot % window; they outlive a phase */
	bool checked;                   /* the peer has answered our CHECK */
	uint64_t *words;                /* --verify of atomics: what a slot's word at the target is by now */
	uint64_t *arrivals;             /* --verify: messages received in this phase, lost ones included, by channel */
	/* local completions that came while a CHECK was answered; bandwidth counts them */
	uint64_t stashed;
	struct placed placed;           /* of this end; behind all that the loop reads */
};

/* run.c: life of a run */
int run_open(struct run *r, const struct open_arguments *arguments, struct control *control);
int run_open_memory(const struct job *job, const struct backend *backend, const struct memory_kind kinds[2],
		    struct arena *ret);
void run_close(struct run *r);
void outcome_done(struct outcome *o);

/* Before the traffic of a phase: forgets the last one, sets the deadlines of this one. */
void run_begin(struct run *r);

/* After it: what was used. */
void run_end(struct run *r);

/* Something is due: the end, an interval, a window, a look. True: the time is over, or r->event_error says why not.
 * `bytes`: payload bytes completed so far. */
bool run_event(struct run *r, uint64_t now, uint64_t bytes);

/* Hears what the peer has said, if it has said something. 0 or negative (said). */
int run_look(struct run *r);

/* Nothing was complete: looks at the control connection and at the deadline now and then. 0 or negative (said). */
int run_idle(struct run *r);

/*
 * Counts a stall. Where there is no room for the times of all, the shortest goes. In order of time;
 * first: it was before those that are there.
 */
void outcome_add_stall(struct outcome *o, const struct stall *s, bool first);

/* Something was completed, or the wait was given up: the present stall ends now. */
void run_stall_over(struct run *r);

/* From now on stalls are noted; session and clock are open. */
void run_watch_stalls(struct run *r, uint64_t after_ns);

/* A round trip took so long that it was a stall. */
void run_note_stall(struct run *r, uint64_t ns);

/* Asks every run of this process to end its phase at the next look; only signal handlers call it. */
void run_ask_to_stop(void);
bool run_is_to_stop(void);

/* Lends all receive slots up to n that are not lent yet. Negative: said. */
int run_lend_all(struct run *r, uint32_t n);

/*
 * How many receives a bandwidth job lends. A write with immediate asks for its receive with its last packet, when the
 * others lie in the slot already: with --verify a slot must have been looked at by then. Each queue pair is in order,
 * so one receive fewer than it has slots is enough (job_under_way() holds a turn of all of them). A shared receive
 * queue has but one number for all, which may be all messages under way apart: backend.slots leaves room for both.
 */
static inline uint32_t run_receives(const struct job *job, uint32_t window) {
	if (!job->verify || job->op != OP_WRITE_IMM)
		return window;
	return window - (job->verbs.srq ? 2 : 1) * job_under_way(job);
}
int run_lend_again(struct run *r, uint32_t slot, int error);

/* Lends one receive slot. Negative: said. */
static inline int run_lend(struct run *r, uint32_t slot) {
	int e = r->backend->post_receive(r->session, slot, r->arena.slot_bytes);

	return likely(e >= 0) ? 0 : run_lend_again(r, slot, e);
}

/* What has come in `slot` is done with: lends the next place of this receive, which without --footprint is the same. */
static inline int run_lend_next(struct run *r, uint32_t slot) {
	const uint32_t next = slot + r->arena.window;

	return run_lend(r, next < r->arena.slots ? next : next - r->arena.slots);
}

/* Says FINISH {count} or RECEIVED {count}. */
int run_say(struct run *r, enum frame_type type, uint64_t count);

/*
 * --barrier. Client: says that it is about to send, and waits until the server has answered.
 * Server: looks for that often, until it has.
 */
int run_barrier(struct run *r);
void run_await_barrier(struct run *r);

/* Waits, with progress, until the peer has said FINISH, RECEIVED, CHECKED, DONE or BARRIER. */
int run_wait_peer(struct run *r, enum frame_type type);

/* The next completions; in event mode sleeps for them, at most so long; 0: does not. 0: none yet, ask again. */
static inline int run_completions_within(struct run *r, struct completion *ret, uint64_t sleep_ns) {
	bool sleep = sleep_ns > 0 && r->job->completion == COMPLETION_EVENT;
	int n = sleep
			? r->backend->wait(r->session, ret, RUN_COMPLETIONS, sleep_ns)
			: r->backend->poll(r->session, ret, RUN_COMPLETIONS);

	/* One writer, so no locked addition is needed. */
	atomic_store_explicit(&r->heart, atomic_load_explicit(&r->heart, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (likely(n > 0)) {
		r->events += (unsigned) n;
		r->idle = 0;
		if (unlikely(r->stall.start_ns))
			run_stall_over(r);
		return n;
	}
	if (unlikely(n < 0))
		return n;
	if (++r->idle < r->control_every && !sleep)
		return 0;
	return run_idle(r);
}

/* The same; sleeps if the caller has nothing else to do. */
static inline int run_completions(struct run *r, struct completion *ret, bool sleep) {
	return run_completions_within(r, ret, sleep ? r->sleep_ns : 0);
}

/* The tests: one function an end. 0 or negative (said). */
int latency_client(struct run *r);
int latency_server(struct run *r);
int bandwidth_client(struct run *r);
int bandwidth_server(struct run *r);

/* run_verify.c: what to check where. Negative, where an int: the GPU's memory could not be read or written (said). */
/* both, before the peer may begin its part of a phase */
int verify_prepare(struct run *r);
uint64_t verify_patience(const struct run *r);  /* ns within which the peer has prepared: --timeout, and its filling */
/* writes that nobody sees arrive: the client asks for a check */
bool verify_is_deferred(const struct run *r);
int verify_fill(struct run *r, uint32_t slot, uint64_t sequence, struct work *work);
int verify_local(struct run *r, uint32_t slot, uint64_t sequence);      /* reads and atomics, at the initiator */
int verify_received(struct run *r, uint32_t slot, uint64_t sequence);
/* the same, where the sequence follows from the channel */
int verify_arrived(struct run *r, const struct completion *c);
int verify_ask(struct run *r, uint64_t first, uint64_t count);          /* CHECK -> CHECKED */
int verify_answer(struct run *r, json_t *payload);
