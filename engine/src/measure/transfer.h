/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs with lanes: transfers, which are batches of one-sided operations between pairs of devices, and message rates,
 * which have one pair, and no batches: each queue pair is kept full.
 *
 *     pair     a device of the initiator and one of the target
 *     lane     one thread's part of one pair: queue pairs, a completion queue and a buffer of its own, at both ends
 *     batch    transfers that are started together and waited for together; each has one or more pieces
 *     phase    warm-up and measurement of one size and one batch size
 *
 * Nothing that is hot is shared: a lane belongs to one thread, and lanes are added up when a phase is over.
 *
 *     transfer_serve.c    the target's side; the initiator's is cli/transfer.c
 *     transfer_lane.c     opens and connects lanes, at both ends
 *     transfer_drive.c    threads, and the hot loop of batches
 *     transfer_rate.c     the hot loop of message rates
 *     transfer_verify.c   patterns
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/message.h"
#include "exchange.h"
#include "place.h"

/* A queue pair; over backends without them an endpoint or a connection, which is a session of its own. */
struct channel {
	struct session *session;
	uint32_t in_session;            /* its number there */
	uint32_t next, end;             /* pieces of the batch under way that are not posted yet */
	uint32_t first;                 /* where its pieces begin in each batch */
	uint32_t under;                 /* posted, and not complete */
	/* rate: */
	uint64_t left;                  /* messages to be posted yet, in this part of the phase */
	uint32_t unsignalled;           /* posted since the last list that asked for a completion */
};

struct transfer;

struct lane {
	/* hot */
	const struct backend *backend;
	struct channel *channels;
	struct session **sessions;      /* all of them; the first is the run's own */
	struct thread *thread;          /* that drives it */
	struct pollfd *alarms;          /* its sessions' part of the thread's, BACKEND_ALARMS each */
	uint16_t *channel_of;           /* by piece */
	uint32_t n_channels, n_sessions;
	uint32_t pieces, done;          /* of the batch under way, */
	uint32_t first;                 /* whose first piece has this slot */
	uint32_t depth;                 /* work requests of a channel */
	bool busy;                      /* a batch is under way */
	bool sleeps;
	bool consecutive, resolves;
	enum op op;
	uint64_t began, ended;          /* ticks: of the batch under way, and when the last one was complete */
	uint64_t batches;               /* complete, in this part of the phase; rate: messages */
	uint32_t open;                  /* rate: channels that have messages left */
	uint64_t posted;                /* rate: messages, in this part of the phase */
	_Atomic uint64_t progress;      /* completions, in this phase */

	/* cold */
	struct transfer *transfer;
	uint32_t number, pair;
	struct job job;                 /* its own: device and server_device are those of the pair */
	struct run run;                 /* of it: job, role, control, backend, session, arena, clock, total */
	struct peer peer;
	uint64_t sequence;              /* of the first transfer of the batch under way: what --verify writes */
	uint64_t moved_batches;         /* in the whole phase, warm-up included; rate: messages */
	struct integrity integrity;
};

struct thread {
	pthread_t id;
	struct transfer *transfer;
	uint32_t number;
	bool started;
	/* --completion event: of all its sessions, and at the end of the control connection */
	struct pollfd *alarms;
	size_t n_alarms;
	bool awake;                     /* something has come since it last slept */
	int error;                      /* negative: said; at the target not yet: the words are below */
	enum exit_code code;
	char text[FAILURE_TEXT_MAX];
};

static inline size_t lane_alarms(const struct lane *l) {
	return (size_t) l->n_sessions * BACKEND_ALARMS;
}

/* Says that something was complete. */
static inline void lane_progress(struct lane *l, uint64_t n) {
	/* One writer, so no locked addition is needed. */
	atomic_store_explicit(&l->progress, atomic_load_explicit(&l->progress, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* One end of a whole job. */
struct transfer {
	struct job job;
	enum role role;
	struct control *control;
	struct place place;
	pthread_mutex_t control_lock;   /* --verify: one lane at a time asks the peer to look */
	struct lane **lanes;
	uint32_t n_lanes, n_pairs;
	struct thread *threads;
	int done_fd;                    /* eventfd: a thread has ended */
	struct watchdog watchdog;       /* over what waits for threads, and for libraries that close: armed only then */
	_Atomic uint64_t heart;         /* stands still: whatever it watches has one deadline */

	/* of the phase under way */
	struct shape shape;
	bool warming;
	uint64_t goal;                  /* batches of each lane; 0: until the time is over */
	uint64_t duration_ticks;
	uint64_t start_ticks;           /* of all lanes */
	atomic_bool stop;
	atomic_bool begun;
	atomic_uint ready;              /* threads that are there */
	atomic_uint left;               /* lanes that have not reached the goal: all go on until none is left */
	atomic_uint running;            /* threads that have not ended */
};

/*
 * transfer_lane.c: opens this end's lanes and connects each with the peer's, in order. Negative: said.
 * Closing takes half-opened ones.
 */
int transfer_open(struct transfer *x, const struct open_arguments *arguments, struct control *control);

/*
 * `on_stuck` ends the process: it is called, in a thread of its own,
 * when a library does not come back. 0 or negative (said).
 */
int transfer_watch(struct transfer *x, void (*on_stuck)(void *userdata), void *userdata);
void transfer_close(struct transfer *x);

/* Of the phase in x->shape: places all pieces, or a rate's messages, and shares them out among the channels. */
void lane_prepare(struct lane *l);

/*
 * Looks up what one piece needs, as an application does that has no session: who the peer is,
 * which memory, which queue pair.
 */
void lane_resolve(struct lane *l, uint32_t piece);

/* transfer_drive.c: starts the threads, which run body() until it answers. Negative: said. */
int transfer_start(struct transfer *x, void *(*body)(void *));
void transfer_stop(struct transfer *x);         /* tells them to end, and waits until they have */
void transfer_join(struct transfer *x);         /* waits for threads that end by themselves, or have ended */
/* the initiator's body: all begin together, and work until the goal is reached */
void *transfer_initiate(void *thread);
/* transfer_rate.c: a thread's part of a message rate, from the common start to its last completion. Negative: said. */
int rate_drive(struct thread *t);
/*
 * The next completions of a session; with --completion event it is armed where there are none. 0: none yet;
 * negative: said.
 */
static inline int lane_look(struct lane *l, uint32_t session, struct completion ret[RUN_COMPLETIONS]) {
	int n;

	if (!l->sleeps)
		return l->backend->poll(l->sessions[session], ret, RUN_COMPLETIONS);
	n = l->backend->lanes->arm(l->sessions[session], ret, RUN_COMPLETIONS,
				   l->alarms + (size_t) session * BACKEND_ALARMS);
	l->thread->awake |= n != 0;
	return n == -EAGAIN ? 0 : n;
}

/*
 * --completion event, when a thread has looked at all that is under way: sleeps for all of it together,
 * unless something has come. 0 or negative (said).
 */
int thread_sleep(struct thread *t);
/*
 * The target's: makes progress until x->stop. A failure is kept in its struct thread: when a client that is through has
 * closed its queues, messages to it may still be under way, and that they fail is nothing to speak of.
 */
void *transfer_attend(void *thread);

/*
 * The target, in the middle of a phase, with x->stop set: why a thread has failed (said), after all have ended.
 * 0: the client has said something by now, or has gone; that counts.
 */
int transfer_why(struct transfer *x);

/*
 * transfer_verify.c. Where a lane verifies, its batches are checked one by one,
 * outside of what is timed. Negative: said.
 */
int transfer_ready_target(struct lane *l);              /* the target, before a phase: all places */
int transfer_ready_batch(struct lane *l);               /* the initiator, before each batch: its own */
int transfer_check(struct lane *l, uint64_t sequence);  /* where it has landed */
int transfer_ask(struct lane *l);                       /* initiator of writes: CHECK -> CHECKED */

/* How long nothing may come: --timeout, and what filling and checking so many batches may take of the time. */
uint64_t transfer_patience(const struct transfer *x, uint32_t batches);

/* transfer_serve.c: the target, from the job on. Negative: said. */
int transfer_serve(struct control *c, const struct job *job, const struct open_arguments *arguments);
