/* SPDX-License-Identifier: Apache-2.0 */
#include "bounce.h"

#include "base/message.h"

enum { NO_SLOT = UINT32_MAX };

struct bounce {
	struct session session;         /* must be first; a copy of the facts of the backend beneath */
	struct backend vtable;          /* of that backend, with our hooks in front */
	const struct backend *under;
	struct session *under_session;
	struct arena payload;           /* what the tests see: not ours to close */
	struct arena host;
	bool tx, rx;                    /* which halves are copied */
	bool fetches;                   /* a local completion brings payload: read */
	uint64_t size;                  /* of the messages of this phase */
	uint32_t staged;                /* its copy has been made, but there was no room to post it; NO_SLOT: none */
};

static struct bounce *bounce(struct session *s) {
	return (struct bounce *) s;
}

static void take_facts(struct bounce *b) {
	bool simulated = b->session.simulated; /* by the GPU */

	b->session = *b->under_session;
	b->session.simulated |= simulated;
	b->session.backend = &b->vtable;
}

static int copy_out(const struct bounce *b, uint32_t slot, uint64_t size) {
	struct gpu *g = arena_tx_region(&b->payload)->gpu;

	return g->runtime->copy(g, arena_tx(&b->host, slot), arena_tx(&b->payload, slot), size, GPU_COPY_OUT);
}

static int copy_in(const struct bounce *b, uint32_t slot) {
	struct gpu *g = arena_rx_region(&b->payload)->gpu;

	return g->runtime->copy(g, arena_rx(&b->payload, slot), arena_rx(&b->host, slot), b->size, GPU_COPY_IN);
}

static int bounce_local_address(struct session *s, struct address *ret) {
	return bounce(s)->under->local_address(bounce(s)->under_session, ret);
}

static int bounce_connect(struct session *s, const struct address *peer) {
	struct bounce *b = bounce(s);
	int e;

	e = b->under->connect(b->under_session, peer);
	take_facts(b);
	return e;
}

static void bounce_begin(struct session *s, uint64_t size) {
	struct bounce *b = bounce(s);

	b->size = size;
	b->staged = NO_SLOT;
	if (b->under->begin)
		b->under->begin(b->under_session, size);
}

static int bounce_post(struct session *s, const struct work *work) {
	struct bounce *b = bounce(s);
	int e;

	if (b->tx && b->staged != work->slot) {
		e = copy_out(b, work->slot, work->size);
		if (unlikely(e < 0))
			return e;
	}
	e = b->under->post(b->under_session, work);
	b->staged = e == -EAGAIN ? work->slot : NO_SLOT;
	return e;
}

static int bounce_post_receive(struct session *s, uint32_t slot, uint64_t size) {
	return bounce(s)->under->post_receive(bounce(s)->under_session, slot, size);
}

/* What has come into host memory goes on to the GPU before anybody hears of it. */
static int bring_in(struct bounce *b, const struct completion *c, int n) {
	int e;

	for (int i = 0; b->rx && i < n; i++) {
		if (c[i].kind != COMPLETION_RECEIVE && !b->fetches)
			continue;
		e = copy_in(b, c[i].slot);
		if (unlikely(e < 0))
			return e;
	}
	return n;
}

static int bounce_poll(struct session *s, struct completion *ret, unsigned max) {
	struct bounce *b = bounce(s);

	return bring_in(b, ret, b->under->poll(b->under_session, ret, max));
}

static int bounce_wait(struct session *s, struct completion *ret, unsigned max, uint64_t timeout_ns) {
	struct bounce *b = bounce(s);

	return bring_in(b, ret, b->under->wait(b->under_session, ret, max, timeout_ns));
}

static void bounce_describe(struct session *s, json_t *record) {
	struct bounce *b = bounce(s);

	b->under->describe(b->under_session, record);
}

static struct session *bounce_close(struct session *s) {
	struct bounce *b = bounce(s);

	if (!b)
		return NULL;
	if (b->under_session)
		b->under_session = b->under->close(b->under_session);
	arena_close(&b->host);
	free(b);
	return NULL;
}

static int open_under(struct bounce *b, const struct open_arguments *arguments) {
	struct open_arguments a = *arguments;
	int e;

	e = arena_open_bounce(&b->host, &b->payload);
	if (e < 0)
		return e;
	a.arena = &b->host;
	e = b->under->open(&a, &b->under_session);
	if (e == 0)
		take_facts(b);
	return e;
}

int bounce_open(const struct open_arguments *arguments, const struct backend **backend, struct session **ret) {
	struct bounce *b = calloc(1, sizeof(*b));
	int e;

	if (!b)
		return failure(-ENOMEM, EXIT_HOST, "no memory for --bounce");
	b->under = *backend;
	b->payload = *arguments->arena;
	b->tx = arena_tx_region(&b->payload)->gpu;
	b->rx = arena_rx_region(&b->payload)->gpu;
	b->fetches = arguments->job->op == OP_READ;
	b->staged = NO_SLOT;
	b->vtable = *b->under;
	b->vtable.local_address = bounce_local_address;
	b->vtable.connect = bounce_connect;
	b->vtable.begin = bounce_begin;
	b->vtable.post = bounce_post;
	b->vtable.post_receive = bounce_post_receive;
	b->vtable.poll = bounce_poll;
	b->vtable.wait = b->under->wait ? bounce_wait : NULL;
	b->vtable.describe = b->under->describe ? bounce_describe : NULL;
	b->vtable.close = bounce_close;
	e = open_under(b, arguments);
	if (e < 0) {
		(void) bounce_close(&b->session);
		return e;
	}
	*backend = &b->vtable;
	*ret = &b->session;
	return 0;
}
