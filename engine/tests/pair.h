/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the control connection: two connected TCP sockets over loopback,
 * which is where a server without a token serves; for fuzzers two sockets without ports,
 * of which a machine never runs out.
 */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "control/control_greet.h"

struct pair {
	int ours, theirs;
};

/* Aborts where it cannot: then nothing can be tested. */
static inline int pair_listen(uint16_t *ret_port) {
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *) &a, sizeof(a)) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *) &a, &length) < 0)
		abort();
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static inline struct pair pair_open(void) {
	/* Closing with a reset leaves no port waiting for a minute. */
	const struct linger none = { .l_onoff = 1 };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint16_t port;
	int listener = pair_listen(&port);
	struct pair p = { .ours = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };

	a.sin_port = htons(port);
	if (p.ours < 0 || connect(p.ours, (struct sockaddr *) &a, sizeof(a)) < 0)
		abort();
	p.theirs = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (p.theirs < 0)
		abort();
	(void) setsockopt(p.ours, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	(void) close(listener);
	return p;
}

static inline struct pair pair_without_ports(void) {
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		abort();
	return (struct pair) { .ours = fds[0], .theirs = fds[1] };
}

/* The bytes of one frame; `mac` NULL: without. Answers how many. */
static inline size_t frame_bytes(unsigned version, unsigned type, const void *payload, size_t length,
				 const uint8_t *key, bool from_server, uint64_t number, uint8_t *ret) {
	uint16_t v = htons((uint16_t) version), t = htons((uint16_t) type);
	uint32_t n = htonl((uint32_t) length);

	memcpy(ret, "PRCH", 4);
	memcpy(ret + 4, &v, 2);
	memcpy(ret + 6, &t, 2);
	memcpy(ret + 8, &n, 4);
	if (length > 0)
		memcpy(ret + CONTROL_HEADER, payload, length);
	if (!key)
		return CONTROL_HEADER + length;
	auth_frame(key, from_server, number, ret, ret + CONTROL_HEADER, length, ret + CONTROL_HEADER + length);
	return CONTROL_HEADER + length + CONTROL_MAC;
}

/* Greets what comes over `fd`, as the listener does; `anywhere`: without a token, too, from wherever it comes. */
static inline int pair_greet_from(int fd, const struct token *token, bool anywhere, struct control **ret) {
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct greeting g;
	int r = greeting_begin(fd, anywhere || token->length > 0, &g);

	while (r == 0) {
		(void) poll(&p, 1, -1);
		r = greeting_hear(&g, token);
	}
	if (r < 0)
		greeting_refuse(&g);
	else
		*ret = g.control;
	return MIN(r, 0);
}

static inline int pair_greet(int fd, const struct token *token, struct control **ret) {
	return pair_greet_from(fd, token, false, ret);
}
