/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The null backend: no network. It is two things at once, the yardstick of the engine's own cost (what a sample
 * costs when the network costs nothing) and the commented skeleton of a backend. To write another: copy this file,
 * say in backend_facts.c what it can do, and add one line to backend.c and three to the Makefile.
 *
 * Each hook is described where it stands; those that this backend does not need are described at the end. All answer
 * 0 or more, or a negative errno: then failure() has said why, once, with the exit code that fits. backend_check()
 * looks at the vtable once, and nobody checks for a required hook after that.
 */
#include "backends/registry.h"
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
 * of struct session. On failure says why, once, and leaves *ret alone: EXIT_USAGE where the backend never has what is
 * asked, EXIT_HOST where this host, device or provider lacks it. Required.
 */
static int null_open(const struct open_arguments *arguments, struct session **ret) {
	struct null_session *s = calloc(1, sizeof(*s));

	if (!s)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a null session");
	s->session = (struct session) {
		.level = LEVEL_NONE,
		.can_notify = true,
		.layer = "none",
	};
	s->arena = *arguments->arena;
	s->verify = arguments->job->verify;
	*ret = &s->session;
	return 0;
}

/* What the peer needs to reach this end and its arena: its connect() gets it, and nobody else reads it. Required. */
static int null_local_address(struct session *s, struct address *ret) {
	(void) s;
	ret->length = 0;
	return 0;
}

/*
 * Joins the two ends, which call it at about the same time, each with the other's address. That comes from the network:
 * check it. Must respect job->timeout_ns. Required.
 */
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

/*
 * A phase of messages of `size` bytes each begins; nothing is under way. For streams, which carry no boundaries of
 * messages. Here what nobody fetched is forgotten. Not required.
 */
static void null_begin(struct session *session, uint64_t size) {
	struct null_session *s = (struct null_session *) session;

	(void) size;
	s->head = s->tail = 0;
}

/*
 * Starts one message. Never blocks, never allocates: this is the hot path. 0: a COMPLETION_LOCAL follows from poll();
 * 1: complete already, and none follows; -EAGAIN: nothing was started, poll and try again. Required.
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

/*
 * Lends receive slot `slot` for one incoming message of up to `size` bytes: a whole slot, as what is lent stays lent
 * when the next phase has larger messages. Never blocks. -EAGAIN as post(). Required.
 */
static int null_post_receive(struct session *s, uint32_t slot, uint64_t size) {
	(void) s;
	(void) slot;
	(void) size;
	return 0;
}

/* Makes progress and takes at most `max` completions, each with its channel where bw may have several queue pairs.
 * 0: none now. The hot path, too. Required. */
static int null_poll(struct session *session, struct completion *ret, unsigned max) {
	struct null_session *s = (struct null_session *) session;
	unsigned n = 0;

	while (n < max && s->tail != s->head)
		ret[n++] = s->queue[s->tail++ & (NULL_QUEUE - 1)];
	return (int) n;
}

/* Ends everything; takes NULL and half-built sessions; answers NULL. Required. */
static struct session *null_close(struct session *s) {
	free(s);
	return NULL;
}

const struct backend backend_null = {
	.facts = &backend_facts[BACKEND_NULL],
	.version = BACKEND_VERSION,
	.probe = null_probe,
	.open = null_open,
	.local_address = null_local_address,
	.connect = null_connect,
	.begin = null_begin,
	.post = null_post,
	.post_receive = null_post_receive,
	.poll = null_poll,
	.close = null_close,

	/*
	 * .resolve: fills in the job's provider, and its device, where they are empty or shortened. Called at the
	 * client only, before the job is sent. NULL: nothing to choose. Not required.
	 */

	/*
	 * .near: names the device that open() will use where the job names none, so that threads and memory can be
	 * placed near it. NULL: the interface that reaches the peer. Not required.
	 */

	/*
	 * .slots: how many slots may be in use at a time (arena.window), at least max(job_under_way(), 2): the same at
	 * both ends, so a function of the job alone. With --footprint the arena has a multiple of them, which are
	 * used in turn. NULL: just those. Not required.
	 */

	/*
	 * .wait: like poll(), but sleeps up to timeout_ns for the first completion; may wake with 0. Arms, polls once
	 * more, then sleeps. Exactly where it has BACKEND_SLEEPS; NULL: --completion event is refused. Not required.
	 */

	/*
	 * .check: nothing has moved for too long; is this end's own device the reason? 0: not as far as it knows;
	 * negative: it is. NULL: cannot tell. Not required.
	 */

	/*
	 * .describe: sets in a record what only this backend's sessions know: what is in use of its own options, over
	 * what was asked for. NULL: there is nothing. Not required.
	 */

	/*
	 * .lanes: the hooks of perch transfer and perch rate, exactly where it has BACKEND_LANES. Not required.
	 * .lanes->place: message `slot` goes through queue pair `channel`, lies `offset` bytes into this end's
	 * memory and the peer's, and has `size` bytes. All that its post needs is prepared here: post() takes the
	 * slot's number as often as the caller likes. Never while the slot is under way. Required.
	 * .lanes->post_list: starts `n` messages of one queue pair from `slot` on, with one doorbell. Answers how many
	 * were started, 0 where poll() must make room first. In such a job each completion names its channel, and
	 * may stand for further messages (completion.more). backend_post_each() does it by post(). Required.
	 * .lanes->arm: like poll(). Where nothing is complete it sets alarms, for which the caller may then sleep,
	 * beside those of other sessions: it misses nothing. It finds them as it has left them, with what has come
	 * (revents); what is not set is cleared. -EAGAIN: nothing is complete, and it is not to sleep, since there is
	 * room to post, or more to be done. Exactly where it has BACKEND_SLEEPS. Not required.
	 */
};
