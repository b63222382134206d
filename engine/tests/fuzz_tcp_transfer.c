/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target of transfers over tcp: what a peer may send over the data connection, to either end.
 * The first byte says who listens, the second how the rest is cut into pieces that arrive by themselves.
 */
#include <sys/socket.h>

#include "backends/tcp/tcp.h"
#include "base/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LENGTH = 1000, POSTS = 20, EACH = LENGTH / POSTS };

static void open_session(struct tcp_session *s, enum role role, enum op op, int fd) {
	const struct job job = { .kind = op == OP_SEND ? KIND_RATE : KIND_TRANSFER, .op = op, .outstanding = POSTS,
				 .queue_pairs = 1, .batch = 1, .sizes = { EACH }, .n_sizes = 1 };
	/* Exactly so much, so that the sanitizer sees a byte beside it. */
	uint8_t *buffer = calloc(1, LENGTH);

	*s = (struct tcp_session) {
		.arena = { .tx = buffer, .rx = buffer, .length = 2 * LENGTH, .slot_bytes = LENGTH, .slots = POSTS },
		.fd = fd, .listener = -1, .wake_fd = -1, .role = role,
	};
	if (!buffer || (role == ROLE_CLIENT ? tcp_initiator_open(s, &job) : tcp_target_open(s, &job, 0)) < 0)
		abort();
	for (uint32_t slot = 0; role == ROLE_CLIENT && slot < POSTS; slot++) {
		const struct work w = { .op = op, .slot = slot, .more = slot % 4 == 1 };

		tcp_place(&s->session, slot, 0, slot * EACH, EACH);
		if (s->vtable.post(&s->session, &w) < 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	enum role role = size > 0 && data[0] & 1 ? ROLE_CLIENT : ROLE_SERVER;
	static const enum op ops[] = { OP_WRITE, OP_READ, OP_SEND };
	enum op op = ops[size > 0 ? (data[0] >> 1) % ELEMENTSOF(ops) : 0];
	size_t piece = size > 1 ? data[1] + 1u : 1, done = 0;
	struct completion c[8];
	struct tcp_session s;
	int fds[2], r = 0;
	uint8_t sink[4096];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		abort();
	failure_reset();
	open_session(&s, role, op, fds[0]);
	for (size_t i = MIN(size, 2); r >= 0 && i < size; i += piece) {
		/* An initiator with nothing under way does not read on. */
		if (send(fds[1], data + i, MIN(piece, size - i), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		r = s.vtable.poll(&s.session, c, ELEMENTSOF(c));
		if (r > 0)
			done += (size_t) r;
		while (recv(fds[1], sink, sizeof(sink), MSG_DONTWAIT) == sizeof(sink))
			;
	}
	(void) shutdown(fds[1], SHUT_WR);
	for (int i = 0; i < 64 && r >= 0; i++) {
		r = s.vtable.poll(&s.session, c, ELEMENTSOF(c));
		if (r > 0)
			done += (size_t) r;
	}
	/* A failure says so, and nobody is told of more than was posted. */
	if (done > (role == ROLE_CLIENT ? POSTS : 0) || (r < 0) != (failure_text()[0] != '\0'))
		abort();
	s.initiator = tcp_initiator_close(s.initiator);
	s.target = tcp_target_close(s.target);
	free(s.arena.tx);
	(void) close(fds[0]);
	(void) close(fds[1]);
	return 0;
}
