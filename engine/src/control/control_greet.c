/* SPDX-License-Identifier: Apache-2.0 */
#include "control_greet.h"

#include "host/netdev.h"

_Static_assert(sizeof(struct hello) <= CONTROL_HELLO_MAX && CONTROL_MAC <= CONTROL_HELLO_MAX, "greeting.frame");

int greeting_begin(int fd, bool has_token, struct greeting *ret) {
	struct control *c;
	int r;

	*ret = (struct greeting) { .control = NULL };
	/* Two frames fit into the buffer of any socket; who does not take them need not be waited for. */
	r = control_new(fd, true, 0, &c);
	if (r < 0)
		return r;
	ret->control = c;
	if (c->peer.ss_family == AF_UNSPEC)
		return failure(-ECONNRESET, EXIT_PEER, "the client was gone at once");
	if (!has_token && !address_is_loopback(&c->peer))
		return failure(-EPERM, EXIT_PEER,
			       "%s refused: without a token only loopback is served; start both ends with --token-file",
			       c->peer_name);
	return 0;
}

/* Bytes up to `length` in all. 1: they are there. Never one more, which would be of the next frame. */
static int take(struct greeting *g, size_t length) {
	ssize_t n = recv(g->control->fd, g->frame + g->have, length - g->have, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return control_say_lost(g->control, n == 0 ? -ECONNRESET : -errno, "greeting it");
	g->have += (size_t) n;
	return g->have == length;
}

/* One frame of the greeting, which has a fixed type and length. 1: it is there. */
static int take_frame(struct greeting *g, enum frame_type type, size_t length) {
	struct frame_header h;
	int r = 1;

	if (g->have < CONTROL_HEADER)
		r = take(g, CONTROL_HEADER);
	if (r <= 0)
		return r;
	r = control_read_header(g->control, g->frame, CONTROL_HELLO_MAX, &h);
	if (r < 0)
		return r;
	if (h.type != type || h.length != length)
		return failure(-EPROTO, EXIT_PEER, "%s did not greet as perch does; refused", g->control->peer_name);
	r = g->have < CONTROL_HEADER + length ? take(g, CONTROL_HEADER + length) : 1;
	if (r <= 0)
		return r;
	g->have = 0;
	g->control->received++;
	return 1;
}

static int challenge(struct greeting *g, const struct token *token) {
	struct hello mine = { .has_token = token->length > 0 }, theirs;
	int r;

	memcpy(&theirs, g->frame + CONTROL_HEADER, sizeof(theirs));
	r = auth_nonce(mine.nonce);
	if (r < 0)
		return r;
	auth_proof(token, false, theirs.nonce, mine.nonce, g->proof);
	auth_proof(token, true, theirs.nonce, mine.nonce, g->answer);
	auth_key(token, theirs.nonce, mine.nonce, g->key);
	r = control_send_raw(g->control, FRAME_CHALLENGE, &mine, sizeof(mine));
	return r < 0 ? control_say_lost(g->control, r, "greeting it") : 0;
}

static int welcome(struct greeting *g, size_t proof_length) {
	struct control *c = g->control;
	int r;

	if (proof_length > 0 && !auth_equal(g->frame + CONTROL_HEADER, g->proof))
		return failure(-EACCES, EXIT_PEER, "wrong token: the two ends were given different token files");
	r = control_send_raw(c, FRAME_WELCOME, g->answer, proof_length);
	if (r < 0)
		return control_say_lost(c, r, "greeting it");
	memcpy(c->key, g->key, sizeof(c->key));
	c->keyed = proof_length > 0;
	return 1;
}

int greeting_hear(struct greeting *g, const struct token *token) {
	size_t proof_length = token->length > 0 ? CONTROL_MAC : 0;
	int r;

	if (!g->heard) {
		r = take_frame(g, FRAME_HELLO, sizeof(struct hello));
		if (r <= 0)
			return r;
		r = challenge(g, token);
		if (r < 0)
			return r;
		g->heard = true;
	}
	r = take_frame(g, FRAME_PROOF, proof_length);
	return r <= 0 ? r : welcome(g, proof_length);
}

void greeting_refuse(struct greeting *g) {
	/* What is wrong with this host is not a stranger's to know. */
	if (g->control && failure_code() == EXIT_PEER)
		control_send_error(g->control);
	explicit_bzero(g->key, sizeof(g->key));
	g->control = control_close(g->control);
}
