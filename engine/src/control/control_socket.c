/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of the control connection: whole reads and writes, connecting and listening, each under a deadline. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "host/netdev.h"
#include "control.h"

/* Sleeps until the descriptor is ready or the deadline has come: 0, -ETIMEDOUT or another error. */
static int wait_ready(int fd, short events, uint64_t deadline_ns) {
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		uint64_t now = monotonic_ns();
		int r;

		if (now >= deadline_ns)
			return -ETIMEDOUT;
		/* Rounded up, so that the last fraction of a millisecond is slept and not spun. */
		r = poll(&p, 1, (int) MIN((deadline_ns - now) / NSEC_PER_MSEC + 1, UINT64_C(1000000)));
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

int socket_write(int fd, const void *data, size_t length, uint64_t deadline_ns) {
	const uint8_t *p = data;
	int r;

	while (length > 0) {
		ssize_t n = send(fd, p, length, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			p += n;
			length -= (size_t) n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return errno == EPIPE || errno == ECONNRESET ? -ECONNRESET : -errno;
		r = wait_ready(fd, POLLOUT, deadline_ns);
		if (r < 0)
			return r;
	}
	return 0;
}

int socket_read(int fd, void *ret, size_t length, uint64_t deadline_ns) {
	uint8_t *p = ret;
	int r;

	while (length > 0) {
		ssize_t n = recv(fd, p, length, MSG_DONTWAIT);

		if (n > 0) {
			p += n;
			length -= (size_t) n;
			continue;
		}
		if (n == 0)
			return -ECONNRESET;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		r = wait_ready(fd, POLLIN, deadline_ns);
		if (r < 0)
			return r;
	}
	return 0;
}

void address_format(const struct sockaddr_storage *a, bool port, char *ret, size_t size) {
	char host[NI_MAXHOST], service[NI_MAXSERV];

	if (getnameinfo((const struct sockaddr *) a, sizeof(*a), host, sizeof(host), service, sizeof(service),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
		(void) snprintf(ret, size, "?");
		return;
	}
	/* An IPv4 peer of a dual-stack listener is shown as what it is. */
	const char *shown = strncmp(host, "::ffff:", 7) == 0 && strchr(host, '.') ? host + 7 : host;

	if (!port)
		(void) snprintf(ret, size, "%s", shown);
	else
		(void) snprintf(ret, size, strchr(shown, ':') ? "[%s]:%s" : "%s:%s", shown, service);
}

static int resolve(const char *host, uint16_t port, int flags, struct addrinfo **ret) {
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	char service[8];
	int r;

	(void) snprintf(service, sizeof(service), "%u", port);
	r = getaddrinfo(host, service, &hints, ret);
	/* For names alone: AI_ADDRCONFIG refuses 127.0.0.1 where each other address of the host is of IPv6. */
	hints.ai_flags = flags | AI_NUMERICSERV;
	if (r == EAI_NONAME)
		r = getaddrinfo(host, service, &hints, ret);
	if (r != 0)
		return failure(-EADDRNOTAVAIL, flags & AI_PASSIVE ? EXIT_USAGE : EXIT_PEER,
			       "cannot resolve '%s': %s; check the name, or use a numeric address", host,
			       r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
	return 0;
}

static int connect_one(const struct addrinfo *a, const char *bind_to, uint64_t deadline_ns, int *ret) {
	_cleanup_close_ int fd = -1;
	socklen_t length = sizeof(int);
	int r, on = 1, error = 0;

	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind_to && bind_to[0]) {
		struct addrinfo hints = { .ai_family = a->ai_family, .ai_flags = AI_NUMERICHOST }, *own;

		if (getaddrinfo(bind_to, NULL, &hints, &own) != 0)
			return -EAFNOSUPPORT;
		r = bind(fd, own->ai_addr, own->ai_addrlen) < 0 ? -errno : 0;
		freeaddrinfo(own);
		if (r < 0)
			return r;
	}
	(void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
		if (errno != EINPROGRESS)
			return -errno;
		r = wait_ready(fd, POLLOUT, deadline_ns);
		if (r < 0)
			return r;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 || error)
			return error ? -error : -errno;
	}
	*ret = fd;
	fd = -1;
	return 0;
}

int socket_connect(const char *host, uint16_t port, const char *bind_to, uint64_t timeout_ns, int *ret) {
	uint64_t deadline = monotonic_ns() + timeout_ns;
	struct addrinfo *list, *a;
	int r;

	r = resolve(host, port, AI_ADDRCONFIG, &list);
	if (r < 0)
		return r;
	r = -EADDRNOTAVAIL;
	for (a = list; a; a = a->ai_next) {
		r = connect_one(a, bind_to, deadline, ret);
		if (r >= 0)
			break;
	}
	freeaddrinfo(list);
	if (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT)
		return failure(r, EXIT_HOST, "cannot connect to %s from '%s': this host has no such address", host,
			       bind_to && bind_to[0] ? bind_to : "any address");
	if (r < 0)
		return failure(r, EXIT_PEER, "cannot connect to %s port %u: %s; is `perch serve` running there, "
			       "and does a firewall let the port through?", host, port, strerror(-r));
	return 0;
}

static int listen_one(const struct addrinfo *a, int *ret) {
	_cleanup_close_ int fd = -1;
	int on = 1, off = 0;

	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->ai_family == AF_INET6)
		(void) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0)
		return -errno;
	*ret = fd;
	fd = -1;
	return 0;
}

static int listen_on(const char *host, uint16_t port, bool token, bool optional, int *ret) {
	struct addrinfo *list;
	char text[80];
	int r;

	r = resolve(host, port, AI_PASSIVE, &list);
	if (r < 0)
		return r;
	const struct addrinfo *a = list; /* a name stands for its first address; several are several --bind */
	struct sockaddr_storage address = { 0 };

	memcpy(&address, a->ai_addr, a->ai_addrlen);
	address_format(&address, true, text, sizeof(text));
	if (!token && !address_is_loopback(&address)) {
		freeaddrinfo(list);
		return failure(-EPERM, EXIT_USAGE, "refusing to listen on %s without a token: any host that reaches "
			       "the port could start traffic; give --token-file, or bind a loopback address", text);
	}
	r = listen_one(a, ret);
	freeaddrinfo(list);
	if (r == -EADDRINUSE)
		return failure(r, EXIT_HOST,
			       "cannot listen on %s: the port is in use; stop the program that has it (`ss -tanp`; "
			       "after a connection's end it stays taken for a minute), or choose another with --port",
			       text);
	if (r < 0 && !optional)
		return failure(r, EXIT_HOST, "cannot listen on %s: %s", text, strerror(-r));
	return r;
}

int socket_listen(const char *bind_to, uint16_t port, bool token, int *ret_fds, size_t max) {
	static const char *const loopback[] = { "127.0.0.1", "::1" };
	int r, n = 0;

	if (bind_to && bind_to[0]) {
		r = listen_on(bind_to, port, token, false, &ret_fds[0]);
		return r < 0 ? r : 1;
	}
	if (token) {
		/* One dual-stack socket; hosts without IPv6 have the other. */
		r = listen_on("::", port, token, true, &ret_fds[0]);
		if (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL)
			r = listen_on("0.0.0.0", port, token, false, &ret_fds[0]);
		return r < 0 ? r : 1;
	}
	for (size_t i = 0; i < MIN(ELEMENTSOF(loopback), max); i++) {
		r = listen_on(loopback[i], port, token, i > 0, &ret_fds[n]);
		if (r >= 0)
			n++;
		else if (i == 0 || r == -EADDRINUSE)
			return r;
	}
	return n;
}
