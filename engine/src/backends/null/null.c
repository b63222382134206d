/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The null backend: no network. It is two things at once, the yardstick of the engine's own cost (what a sample
 * costs when the network costs nothing) and the commented skeleton of a backend. To write another: copy this file,
 * say in backend_facts.c what it can do, and add one line to backend.c and three to the Makefile.
 */
#include "backends/backend.h"
#include "base/message.h"

enum { NULL_QUEUE = JOB_OUTSTANDING_MAX * 2 }; /* a send makes one completion of each kind */

struct null_session {
	struct session session;         /* Required, first: the tests hold a pointer to it. */
	struct arena arena;
	bool verify;                    /* only then does anything have to arrive */
	struct completion queue[NULL_QUEUE];
	unsigned head, tail;            /* free running; a power of two many places */
};

_Static_assert((NULL_QUEUE & (NULL_QUEUE - 1)) == 0, "the queue's indices wrap by masking");

/* Lists the devices of this host; calls back for each. None is no error. Required. */
static int null_probe(device_callback callback, void *userdata) {
	const struct device d = { .backend = "null", .name = "null", .layer = "none", .state = "up" };

	return callback(&d, userdata);
}

/*
 * Makes an endpoint that can reach the peer named in the arguments, and registers the arena with it. Fills in the facts
 * of struct session. On failure says why, once, with the right exit code, and leaves *ret alone. Required.
 */
static int null_open(const struct open_arguments *arguments, struct session **ret) {
	struct null_session *s = calloc(1, sizeof(*s));

	if (!s)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a null session");
	s->session = (struct session) {
		.level = LEVEL_NONE,
		.can_notify = true,
		.layer = "none",
		.tcp_retransmissions = -1,
		.tcp_initial_rtt_us = -1,
		.tcp_window_bytes = -1,
	};
	s->arena = *arguments->arena;
	s->verify = arguments->job->verify;
	*ret = &s->session;
	return 0;
}

/* What the peer's connect() gets: opaque to everybody else. Required. */
static int null_local_address(struct session *s, struct address *ret) {
	(void) s;
	ret->length = 0;
	return 0;
}

/* Joins the two ends. The address comes from the network: check it. Required. */
static int null_connect(struct session *s, const struct address *peer) {
	(void) s;
	return peer->length == 0 ? 0 : failure(-EPROTO, EXIT_PEER, "the peer's null address is not empty; refused");
}

static inline void complete(struct null_session *s, enum completion_kind kind, uint32_t slot) {
	s->queue[s->head++ & (NULL_QUEUE - 1)] = (struct completion) { .kind = kind, .slot = slot };
}

/* What the "peer" would do to this end's memory, done here, so that --verify has something to check. */
static void deliver(struct null_session *s, const struct work *w) {
	uint8_t *tx = arena_tx(&s->arena, w->slot), *rx = arena_rx(&s->arena, w->slot);
	uint64_t *words = (uint64_t *) (void *) rx;

	switch (w->op) {
	case OP_FETCH_ADD:
	case OP_COMPARE_SWAP:
		/* The word before the operation: what --verify expects a target to have held after `compare` turns. */
		for (uint64_t k = 0; k < w->size / sizeof(uint64_t); k++)
			words[k] = w->compare;
		return;
	default:
		memcpy(rx, tx, w->size);
	}
}

/* A phase of messages of one size begins. Not required; here what nobody fetched is forgotten. */
static void null_begin(struct session *session, uint64_t size) {
	struct null_session *s = (struct null_session *) session;

	(void) size;
	s->head = s->tail = 0;
}

/*
 * Starts one message. Never blocks, never allocates: this is the hot path. 0: a COMPLETION_LOCAL follows from poll();
 * 1: complete already; -EAGAIN: no room, poll first. Required.
 */
static int null_post(struct session *session, const struct work *w) {
	struct null_session *s = (struct null_session *) session;

	if (s->head - s->tail > NULL_QUEUE - 2)
		return -EAGAIN;
	/* What has arrived lies in the slots until it has been looked at. */
	if (s->verify && s->head - s->tail >= s->arena.slots)
		return -EAGAIN;
	if (s->verify)
		deliver(s, w);
	if (op_takes_receive(w->op) || w->notify) {
		complete(s, COMPLETION_RECEIVE, w->slot); /* the echo */
		return 1;
	}
	complete(s, COMPLETION_LOCAL, w->slot);
	return 0;
}

/* Lends a receive slot for one message. Required. */
static int null_post_receive(struct session *s, uint32_t slot, uint64_t size) {
	(void) s;
	(void) slot;
	(void) size;
	return 0;
}

/* Makes progress, and hands out what is complete. Required. */
static int null_poll(struct session *session, struct completion *ret, unsigned max) {
	struct null_session *s = (struct null_session *) session;
	unsigned n = 0;

	while (n < max && s->tail != s->head)
		ret[n++] = s->queue[s->tail++ & (NULL_QUEUE - 1)];
	return (int) n;
}

/* Takes NULL and half-built sessions; answers NULL. Required. */
static struct session *null_close(struct session *s) {
	free(s);
	return NULL;
}

const struct backend backend_null;
const struct backend backend_null = {
	.facts = &backend_facts[BACKEND_NULL],
	.version = BACKEND_VERSION,
	.probe = null_probe,
	/* .resolve: nothing to choose. Not required. */
	.open = null_open,
	.local_address = null_local_address,
	.connect = null_connect,
	.begin = null_begin,
	.post = null_post,
	.post_receive = null_post_receive,
	.poll = null_poll,
	/* .wait: nothing to sleep for, so --completion event is refused. Not required. */
	/* .refresh: no facts change while running. Not required. */
	.close = null_close,
};
