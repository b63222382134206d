/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bandwidth, written once over every backend: --outstanding messages under way on each queue pair.
 *
 * send, write-imm: the time ends when the receiver has said that it has everything (RECEIVED); write, read, atomics:
 * with the last local completion. --bidirectional: both ends do both at once, and the client's time covers both ways.
 *
 * Several queue pairs: each is kept full by itself, as perftest's run_iter_bw() does it, so that a slow one holds up
 * no other. A number of messages, a pace and --verify deal the messages out in turn: then it is known beforehand which
 * one goes where. The receiver need not know: what has come makes room on its own queue pair.
 */
#include "base/message.h"
#include "pace.h"
#include "run.h"

/* The loop is compiled twice: with one queue pair it asks for nothing that only several have. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A queue pair that is kept full by itself. */
struct flow {
	uint64_t left;          /* messages to post; UINT64_MAX: until the time is over */
	uint32_t slot;          /* of the next one */
	uint32_t run_left, list_left;   /* messages of its run, and of its list, from that one on */
	uint32_t under_way;
};

struct stream {
	uint64_t limit;         /* messages to post */
	uint64_t posted, completed;
	uint64_t checked;       /* of deferred writes: so many are verified */
	bool sends, receives;   /* what this end does */
	bool stopped;           /* posts no more: limit or time */
	bool full;              /* could not post for want of room */
	bool early;             /* the pace has no turn yet */
	bool over;              /* the time is: what follows only brings the completions of the last ones */
	uint32_t list;          /* --batch */
	uint64_t turn;          /* messages until each queue pair has had its run */
	uint32_t under_way;     /* so many at most */
	uint32_t room;          /* a list waits for room for so many */
	struct pace pace;
	struct flow *flows;     /* of the queue pairs; NULL: they take turns, or there is one */
	uint32_t run;           /* messages of a queue pair until the next one's slots begin */
};

/* The message under way in a slot: the last one posted there. Completions of different slots may come in any order. */
static uint64_t sequence_in(const struct run *r, const struct stream *s, uint32_t slot) {
	uint64_t last = s->posted - 1, slots = r->arena.slots;

	return last - (last % slots + slots - slot) % slots;
}

/*
 * Sleeps in event mode only where nothing can be posted: the queue is full, all is posted,
 * or the next has its turn later.
 */
static inline uint64_t sleep_ns(const struct run *r, const struct stream *s) {
	if (s->stopped || s->full || !s->sends)
		return r->sleep_ns;
	return unlikely(s->early) ? pace_sleep_ns(&s->pace, r, clock_ticks(&r->clock)) : 0;
}

/* `each`: queue pairs are kept full by themselves. */
static ALWAYS_INLINE int take_completions(struct run *r, struct stream *s, const bool each) {
	struct completion c[RUN_COMPLETIONS];
	int e = 0, n;

	s->completed += r->stashed;
	r->stashed = 0;
	r->under_way = s->posted - s->completed + s->full;
	n = run_completions_within(r, c, sleep_ns(r, s));
	for (int i = 0; i < n; i++) {
		if (c[i].kind == COMPLETION_LOCAL) {
			if (r->job->verify && !op_takes_receive(r->job->op) && !verify_is_deferred(r))
				e = verify_local(r, c[i].slot, sequence_in(r, s, c[i].slot));
			if (unlikely(e < 0))
				return e;
			r->busy[c[i].slot] = false;
			s->completed++;
			if (each)
				s->flows[c[i].channel].under_way--;
			continue;
		}
		if (r->job->verify) {
			e = verify_arrived(r, c + i);
			if (e < 0)
				return e;
		}
		r->outcome.received++;
		e = run_lend_next(r, c[i].slot);
		if (unlikely(e < 0))
			return e;
	}
	return n;
}

/*
 * Writes that nobody sees arrive are checked in rounds: a window of slots written, all complete, then looked at by
 * the target.
 */
static int check_round(struct run *r, struct stream *s) {
	uint64_t first = s->checked;

	s->checked = s->posted;
	return verify_ask(r, first, s->posted - first);
}

/* Whether there is room for `n` more, and nothing else stands before the next. */
static inline bool may_post(const struct run *r, const struct stream *s, uint64_t n, bool deferred) {
	return s->posted < s->limit && s->posted - s->completed + n <= s->under_way &&
	       !(deferred && s->posted - s->checked == r->arena.window);
}

/* A new list begins only when there is room for all of it; within one, for the next. */
static inline uint64_t room_needed(const struct stream *s) {
	return s->room > 1 && s->posted % s->list == 0 ? MIN((uint64_t) s->room, s->limit - s->posted) : 1;
}

/* The completion must come by itself where no message of the same queue pair follows that would bring it: at the end,
 * and at the end of a round. */
static inline bool is_last(const struct run *r, const struct stream *s, bool deferred) {
	uint64_t left = s->limit - s->posted;

	if (deferred)
		left = MIN(left, s->checked + r->arena.window - s->posted);
	return left <= s->turn && job_is_last(r->job, s->posted, left);
}

/* Whether the next message of the same list will be posted at once. */
static inline bool follows(const struct run *r, const struct stream *s, bool deferred) {
	struct stream next = { .posted = s->posted + 1, .completed = s->completed, .checked = s->checked,
			       .limit = s->limit, .under_way = s->under_way };

	return next.posted % s->list != 0 && may_post(r, &next, 1, deferred) && !r->busy[next.posted % r->arena.slots];
}

/* Posts what there is room for. */
static inline int post_some(struct run *r, struct stream *s) {
	const bool verify = r->job->verify, deferred = verify_is_deferred(r), paced = s->pace.paced && !s->over;
	struct work w = { .op = r->job->op, .size = r->phase.size, .operand = atomic_bits(r->job->atomic_type, 1) };
	int e;

	/*
	 * Bounded even where every message is complete at once: completions of the other kind,
	 * and time, must have their turn.
	 */
	s->full = !may_post(r, s, room_needed(s), deferred);
	s->early = false;
	for (uint32_t n = 0; n < s->under_way && may_post(r, s, room_needed(s), deferred); n++) {
		w.slot = (uint32_t) (s->posted % r->arena.slots);
		s->full = r->busy[w.slot];
		if (s->full)
			break;
		s->early = paced && !pace_due(&s->pace, clock_ticks(&r->clock));
		if (s->early)
			break;
		if (verify) {
			e = verify_fill(r, w.slot, s->posted, &w);
			if (e < 0)
				return e;
		}
		w.flush = is_last(r, s, deferred);
		w.more = s->list > 1 && !paced && n + 1 < s->under_way && follows(r, s, deferred);
		e = r->backend->post(r->session, &w);
		if (e == -EAGAIN) {
			s->pace.done -= paced;
			s->full = true;
			break;
		}
		if (unlikely(e < 0))
			return e;
		r->busy[w.slot] = e == 0;
		r->events += e == 1; /* progress that no poll will report */
		s->completed += e == 1;
		s->posted++;
	}
	return 0;
}

/* Slots of a queue pair are runs, between which lie those of the others. */
static inline void go_on(const struct run *r, const struct stream *s, struct flow *f) {
	f->slot++;
	f->left--;
	if (--f->list_left == 0)
		f->list_left = s->list;
	if (--f->run_left > 0)
		return;
	f->run_left = s->run;
	f->slot += (uint32_t) s->turn - s->run;
	if (f->slot >= r->arena.slots)
		f->slot -= r->arena.slots;
}

/* Whether there is room for the next message, or at the beginning of a list for all of it. */
static inline bool has_room(const struct run *r, const struct stream *s, const struct flow *f) {
	const uint64_t n = f->list_left == s->list ? MIN((uint64_t) s->room, f->left) : 1;

	return f->left > 0 && f->under_way + n <= r->job->outstanding && !r->busy[f->slot];
}

/* Posts what there is room for on one queue pair. 1: there may be more; 0: it is full; negative: said. */
static inline int post_flow(struct run *r, struct stream *s, struct flow *f, struct work *w) {
	const uint32_t most = r->job->outstanding; /* bounded, as post_some() */

	for (uint32_t n = 0; n < most; n++) {
		int e;

		if (!has_room(r, s, f))
			return 0;
		w->slot = f->slot;
		w->flush = f->left == 1;
		w->more = f->list_left > 1 && f->left > 1 && n + 1 < most && f->under_way + 2 <= most &&
			  !r->busy[f->slot + 1];
		e = r->backend->post(r->session, w);
		if (unlikely(e < 0))
			return e == -EAGAIN ? 0 : e;
		r->busy[w->slot] = e == 0;
		f->under_way += e == 0;
		r->events += e == 1; /* progress that no poll will report */
		s->completed += e == 1;
		s->posted++;
		go_on(r, s, f);
	}
	return 1;
}

static inline int post_flows(struct run *r, struct stream *s) {
	struct work w = { .op = r->job->op, .size = r->phase.size, .operand = atomic_bits(r->job->atomic_type, 1) };

	s->full = true;
	for (uint32_t i = 0; i < r->job->queue_pairs; i++) {
		int e = post_flow(r, s, s->flows + i, &w);

		if (unlikely(e < 0))
			return e;
		s->full &= e == 0;
	}
	return 0;
}

static int say_finished(struct run *r, struct stream *s) {
	int e = 0;

	s->stopped = true;
	s->limit = s->posted;
	r->outcome.overloaded = pace_is_behind(&s->pace, clock_ticks(&r->clock));
	if (verify_is_deferred(r) && s->checked < s->posted)
		e = check_round(r, s);
	return e < 0 ? e : run_say(r, FRAME_FINISH, s->posted);
}

/*
 * The time is over. With --cq-moderation one turn of all queue pairs follows, for the completions of what went before.
 */
static void end_soon(const struct run *r, struct stream *s) {
	const bool unsignalled = r->job->cq_moderation > 1;

	if (s->over)
		return;
	s->over = true;
	s->limit = s->posted + (unsignalled ? s->turn : 0);
	for (uint32_t i = 0; s->flows && i < r->job->queue_pairs; i++)
		s->flows[i].left = unsignalled ? s->run : 0;
}

/* Sends until the limit or the end of the time, and until all of it is complete. */
static ALWAYS_INLINE int send_loop(struct run *r, struct stream *s, const bool each) {
	const bool deferred = verify_is_deferred(r);
	uint64_t now;
	int e, n;

	while (!s->stopped || s->completed < s->posted) {
		if (deferred && s->posted - s->checked == r->arena.window && s->completed == s->posted) {
			e = check_round(r, s);
			if (e < 0)
				return e;
		}
		e = s->stopped ? 0 : each ? post_flows(r, s) : post_some(r, s);
		if (unlikely(e < 0))
			return e;
		n = take_completions(r, s, each);
		if (unlikely(n < 0))
			return n;
		now = clock_ticks(&r->clock);
		r->outcome.messages = s->completed;
		if (unlikely(now >= r->next_event) &&
		    run_event(r, now, (s->completed + (s->receives ? r->outcome.received : 0)) * r->phase.size))
			end_soon(r, s);
		if (unlikely(r->event_error < 0))
			return r->event_error;
		/* A receiver counts what is still to come. The target of one-sided operations cannot,
		 * and makes progress for them only until it hears FINISH: there all must be complete first. */
		if (!s->stopped && s->posted == s->limit &&
		    (op_takes_receive(r->job->op) || s->completed == s->posted)) {
			e = say_finished(r, s);
			if (e < 0)
				return e;
		}
	}
	return 0;
}

/* Takes what the peer sends until it has said how much that is, and it is there, or has been lost; then says so. */
static int receive_rest(struct run *r, struct stream *s) {
	uint64_t last = 0, now;
	int n;

	while (!r->peer_finished || r->outcome.received < r->peer_count) {
		n = take_completions(r, s, false);
		if (n < 0)
			return n;
		if (!r->session->lossy || !r->peer_finished)
			continue;
		now = monotonic_ns();
		if (n > 0 || last == 0)
			last = now;
		else if (now - last >= RUN_LOSS_NS) {
			r->outcome.idle_ns = now - last;
			break;
		}
	}
	return run_say(r, FRAME_RECEIVED, r->outcome.received);
}

/* 0, also where they take turns; negative: said. */
static int open_flows(const struct run *r, struct stream *s) {
	const uint32_t n = r->job->queue_pairs;

	if (n == 1 || r->phase.count || r->job->verify || s->pace.paced)
		return 0;
	s->flows = calloc(n, sizeof(*s->flows));
	if (!s->flows)
		return failure(-ENOMEM, EXIT_HOST, "no memory for %u queue pairs", n);
	/* Of its own depth a queue pair can hold back all but one of its moderation. */
	s->room = r->job->outstanding >= r->job->cq_moderation - 1 + s->list ? s->list : 1;
	for (uint32_t i = 0; i < n; i++)
		s->flows[i] = (struct flow) { .left = UINT64_MAX, .slot = i * s->run, .run_left = s->run,
					      .list_left = s->list };
	return 0;
}

static int send_all(struct run *r, struct stream *s) {
	int e = open_flows(r, s);

	if (e == 0)
		e = s->flows ? send_loop(r, s, true) : send_loop(r, s, false);
	free(s->flows);
	s->flows = NULL;
	return e;
}

static int bandwidth(struct run *r, struct stream *s) {
	const bool solo = r->backend->facts->flags & BACKEND_SOLO;
	int e;

	s->limit = r->phase.count ? r->phase.count : UINT64_MAX;
	s->list = r->job->batch;
	s->run = job_run(r->job);
	s->turn = (uint64_t) r->job->queue_pairs * s->run;
	s->under_way = job_under_way(r->job);
	/* Completions may be owed by others: each queue pair can hold back all but one of its moderation. */
	s->room = s->under_way >= (uint64_t) r->job->queue_pairs * (r->job->cq_moderation - 1) + s->list
		? s->list : 1;
	pace_begin(&s->pace, r);
	if (r->pace_mark)
		pace_resume(&s->pace, r->pace_mark);
	if (s->sends) {
		e = send_all(r, s);
		if (e < 0)
			return e;
	}
	r->pace_mark = r->keeps_pace ? pace_mark(&s->pace) : 0;
	r->outcome.messages = s->completed;
	r->outcome.skipped = s->pace.skipped;
	if (solo)
		return r->role == ROLE_SERVER || r->job->bidirectional ? run_wait_peer(r, FRAME_FINISH) : 0;
	if (s->receives) {
		e = receive_rest(r, s);
		if (e < 0)
			return e;
	}
	/* One-sided operations: the target only makes progress until the other end is done. */
	if (!s->receives && (!s->sends || r->job->bidirectional))
		return run_wait_peer(r, FRAME_FINISH);
	return s->sends && op_takes_receive(r->job->op) ? run_wait_peer(r, FRAME_RECEIVED) : 0;
}

int bandwidth_client(struct run *r) {
	struct stream s = { .sends = true, .receives = r->job->bidirectional && op_takes_receive(r->job->op) };
	int e;

	e = bandwidth(r, &s); /* receives were lent before the server could send */
	/* One-sided operations of the peer are not seen here: windows of one way would be no peak of both. */
	if (r->job->bidirectional && !s.receives)
		r->outcome.peak_bytes_per_s = r->outcome.min_bytes_per_s = -1;
	r->outcome.elapsed_ns = clock_ns(&r->clock, clock_ticks(&r->clock) - r->begin);
	return e;
}

int bandwidth_server(struct run *r) {
	struct stream s = { .sends = r->job->bidirectional, .receives = op_takes_receive(r->job->op) };

	return bandwidth(r, &s);
}
