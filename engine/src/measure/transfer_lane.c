/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: opened in the same order at both ends, so that each finds its peer by its place. */
#include <stdio.h>
#include <sys/eventfd.h>

#include "backends/registry.h"
#include "base/message.h"
#include "transfer.h"

/* A lane's own memory: what is sent from, or what it lands in; the other half is at the other end. */
static struct memory_kind memory_of(const struct job *job, enum role role) {
	bool sends = (role == ROLE_CLIENT) == (job->op != OP_READ);

	return sends ? job_tx_memory(job) : job_rx_memory(job);
}

static int open_memory(struct lane *l, enum role role) {
	struct memory_kind kind = memory_of(&l->job, role);
	int e = place_memory(&l->transfer->place, l->number, &kind, 1);

	return e < 0 ? e : arena_open_flat(&l->run.arena, job_buffer(&l->job), (uint32_t) job_most_pieces(&l->job),
					   l->job.verify, &kind);
}

/* All sessions of a lane work on its one buffer. */
static int open_sessions(struct lane *l, const struct open_arguments *arguments) {
	struct open_arguments a = *arguments;
	int e = 0;

	a.job = &l->job;
	a.arena = &l->run.arena;
	a.lane = l->number;
	a.wake_fd = l->run.control->fd; /* a peer that gives up is noticed, also while connecting */
	for (uint32_t i = 0; e == 0 && i < l->n_sessions; i++) {
		a.channel = i;
		e = l->run.backend->open(&a, &l->sessions[i]);
	}
	l->run.session = l->sessions[0];
	return e;
}

static int allocate(struct lane *l, const struct open_arguments *arguments) {
	const struct job *job = &l->job;

	l->run = (struct run) {
		.job = job,
		.role = arguments->role,
		.control = l->transfer->control,
		.backend = backend_find(job->backend),
	};
	l->n_channels = job->queue_pairs;
	l->n_sessions = l->run.backend->facts->flags & BACKEND_QUEUE_PAIRS ? 1 : job->queue_pairs;
	l->channels = calloc(l->n_channels, sizeof(*l->channels));
	l->sessions = calloc(l->n_sessions, sizeof(struct session *));
	l->channel_of = calloc(job_most_pieces(job), sizeof(*l->channel_of));
	if (!l->channels || !l->sessions || !l->channel_of)
		return failure(-ENOMEM, EXIT_HOST, "no memory for %u queue pairs", l->n_channels);
	if (arguments->role == ROLE_CLIENT && histogram_new(&l->run.total) < 0)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a histogram (%zu KiB)",
			       sizeof(struct histogram) / 1024);
	return 0;
}

/* In the place of the thread that will drive it, where all that is allocated shall be. */
static int lane_open(struct lane *l, const struct open_arguments *arguments) {
	struct place *place = &l->transfer->place;
	const struct job *job = &l->job;
	const uint32_t thread = l->number % l->transfer->job.threads;
	int e;

	e = allocate(l, arguments);
	if (e == 0)
		e = clock_open(job->clock, job->ignore_mismatch, &l->run.clock);
	if (e == 0)
		e = place_sit(place, thread, l->number);
	if (e == 0)
		e = open_memory(l, arguments->role);
	if (e == 0)
		e = open_sessions(l, arguments);
	if (e < 0)
		return e;
	l->run.placed = place_say(place, thread, &l->run.arena);
	l->backend = l->sessions[0]->backend;
	l->op = job->op;
	l->depth = job->outstanding;
	l->sleeps = job->completion == COMPLETION_EVENT;
	l->consecutive = job->consecutive;
	l->resolves = job->no_session;
	for (uint32_t i = 0; i < l->n_channels; i++) {
		struct channel *c = l->channels + i;

		c->session = l->sessions[l->n_sessions > 1 ? i : 0];
		c->in_session = l->n_sessions > 1 ? 0 : i;
	}
	l->run.session->simulated |= gpu_is_simulated(l->run.arena.regions[0].gpu);
	return 0;
}

/* The run stands for its sessions one after the other: what is exchanged is a session's. */
static int lane_connect(struct lane *l) {
	int e = 0;

	for (uint32_t i = 0; e == 0 && i < l->n_sessions; i++) {
		struct peer peer = { 0 };
		struct run r = l->run;

		r.session = l->sessions[i];
		r.backend = l->backend;
		e = exchange_addresses(&r, &peer);
		if (i == 0)
			l->peer = peer;
		else
			json_decref(peer.end);
	}
	return e;
}

static struct lane *lane_close(struct lane *l) {
	if (!l)
		return NULL;
	for (uint32_t i = 0; l->sessions && i < l->n_sessions; i++)
		if (l->sessions[i])
			l->sessions[i] = l->sessions[i]->backend->close(l->sessions[i]);
	arena_close(&l->run.arena);
	l->run.total = histogram_free(l->run.total);
	json_decref(l->peer.end);
	free(l->sessions);
	free(l->channels);
	free(l->channel_of);
	free(l);
	return NULL;
}

void lane_resolve(struct lane *l, uint32_t piece) {
	const struct shape *s = &l->transfer->shape;
	const struct transfer *x = l->transfer;
	uint64_t offset = shape_piece_offset(s, l->first + piece);
	const struct lane *owner = NULL;

	/* By its address, among all buffers of this end; then by its number, among the queue pairs. */
	for (uint32_t i = 0; i < x->n_lanes && !owner; i++) {
		const struct region *r = &x->lanes[i]->run.arena.regions[0];

		if (l->run.arena.tx + offset >= r->base && l->run.arena.tx + offset < r->base + r->length)
			owner = x->lanes[i];
	}
	for (uint32_t i = 0; owner && i < owner->n_channels; i++) {
		const struct channel *c = owner->channels + i;

		if (i == owner->channel_of[piece])
			c->session->backend->lanes->place(c->session, l->first + piece, c->in_session, offset,
							      shape_piece_size(s, piece));
	}
}

/* Each queue pair has memory of its own, in which its messages go round. */
static void place_messages(struct lane *l, uint32_t channel) {
	const uint32_t slots = job_rate_slots(&l->job);
	struct channel *c = l->channels + channel;
	struct places places;

	job_rate_places(&l->job, &places);
	c->first = c->next = channel * slots;
	c->end = c->first + slots;
	c->under = c->unsignalled = 0;
	for (uint32_t i = 0; l->run.role == ROLE_CLIENT && i < slots; i++)
		c->session->backend->lanes->place(c->session, c->first + i, c->in_session,
						  place_offset(&places, channel, i % places.n),
						  l->transfer->shape.size);
}

/* Each has a run of neighbours of every batch, so that lists are long. */
static void place_pieces(struct lane *l, uint32_t channel) {
	const struct shape *s = &l->transfer->shape;
	const uint64_t pieces = l->pieces;
	struct channel *c = l->channels + channel;

	c->first = (uint32_t) (pieces * channel / l->n_channels);
	c->end = (uint32_t) (pieces * (channel + 1) / l->n_channels);
	c->next = c->end;
	c->under = 0;
	for (uint32_t piece = c->first; l->run.role == ROLE_CLIENT && piece < c->end; piece++) {
		l->channel_of[piece] = (uint16_t) channel;
		for (uint32_t slot = piece; slot < shape_all_pieces(s); slot += l->pieces)
			c->session->backend->lanes->place(c->session, slot, c->in_session, shape_piece_offset(s, slot),
							      shape_piece_size(s, slot));
	}
}

void lane_prepare(struct lane *l) {
	const struct shape *s = &l->transfer->shape;

	l->pieces = (uint32_t) shape_pieces(s);
	l->busy = false;
	l->batches = l->moved_batches = l->sequence = 0;
	l->done = l->first = 0;
	atomic_store(&l->progress, 0);
	l->integrity = (struct integrity) { .located = false };
	if (l->run.total)
		histogram_reset(l->run.total);
	for (uint32_t i = 0; i < l->n_sessions; i++)
		if (l->backend->begin)
			l->backend->begin(l->sessions[i], s->chunk);
	for (uint32_t i = 0; i < l->n_channels; i++)
		if (l->job.kind == KIND_RATE)
			place_messages(l, i);
		else
			place_pieces(l, i);
}

static int open_lane(struct transfer *x, uint32_t number, const struct open_arguments *arguments) {
	struct lane *l = calloc(1, sizeof(*l));

	if (!l)
		return failure(-ENOMEM, EXIT_HOST, "no memory for lane %u of %u", number + 1, x->n_lanes);
	x->lanes[number] = l;
	l->transfer = x;
	l->number = number;
	l->pair = number % x->n_pairs;
	job_for_lane(&x->job, number, &l->job);
	return lane_open(l, arguments);
}

/* A thread sleeps for all of its lanes at once. */
static int open_thread(struct transfer *x, uint32_t number) {
	struct thread *t = x->threads + number;
	size_t n = 0;

	for (uint32_t i = number; i < x->n_lanes; i += x->job.threads)
		n += lane_alarms(x->lanes[i]);
	t->n_alarms = n + 1;
	t->alarms = calloc(t->n_alarms, sizeof(*t->alarms));
	if (!t->alarms)
		return failure(-ENOMEM, EXIT_HOST, "no memory for thread %u of %u", number + 1, x->job.threads);
	alarms_clear(t->alarms, n);
	t->alarms[n] = (struct pollfd) { .fd = x->control->fd, .events = POLLIN };
	for (uint32_t i = number; i < x->n_lanes; i += x->job.threads) {
		n -= lane_alarms(x->lanes[i]);
		x->lanes[i]->alarms = t->alarms + n;
		x->lanes[i]->thread = t;
	}
	return 0;
}

int transfer_open(struct transfer *x, const struct open_arguments *arguments, struct control *control) {
	int e = 0;

	x->role = arguments->role;
	x->control = control;
	x->n_pairs = job_pairs(&x->job);
	x->n_lanes = job_lanes(&x->job);
	(void) pthread_mutex_init(&x->control_lock, NULL);
	x->lanes = calloc(x->n_lanes, sizeof(struct lane *));
	x->threads = calloc(x->job.threads, sizeof(*x->threads));
	x->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!x->lanes || !x->threads || x->done_fd < 0)
		return failure(-ENOMEM, EXIT_HOST, "no memory for %u threads", x->job.threads);
	e = place_open(arguments, &x->place);
	for (uint32_t i = 0; e == 0 && i < x->n_lanes; i++) {
		e = open_lane(x, i, arguments);
		/* Connected before the next is opened: both ends go the same way, and each failure names its device. */
		if (e == 0)
			e = lane_connect(x->lanes[i]);
	}
	stand_aside();
	for (uint32_t i = 0; e == 0 && i < x->job.threads; i++)
		e = open_thread(x, i);
	return e;
}

/* Later than every deadline that is looked at: those know better what is wrong. */
#define STUCK_NS (5 * NSEC_PER_SEC)

int transfer_watch(struct transfer *x, void (*on_stuck)(void *userdata), void *userdata) {
	return watchdog_start(&x->watchdog, &x->heart, x->job.timeout_ns + STUCK_NS, x->control->fd, on_stuck,
			      userdata);
}

void transfer_close(struct transfer *x) {
	transfer_stop(x);
	x->watchdog.armed = true; /* closing may wait for a peer, too */
	for (uint32_t i = 0; x->lanes && i < x->n_lanes; i++)
		x->lanes[i] = lane_close(x->lanes[i]);
	for (uint32_t i = 0; x->threads && i < x->job.threads; i++)
		free(x->threads[i].alarms);
	free(x->lanes);
	free(x->threads);
	x->lanes = NULL;
	x->threads = NULL;
	x->done_fd = close_fd(x->done_fd);
	watchdog_stop(&x->watchdog);
}
