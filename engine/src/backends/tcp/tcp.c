/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tcp backend: one ordinary TCP connection, as the baseline that RDMA is compared with,
 * measured by the same tests with the same statistics. It has one operation, send;
 * a message is `size` bytes of the stream. Transfers have hooks of their own (tcp_transfer.c, tcp_target.c).
 *
 * A completion of a send says that the kernel took the bytes (inject level);
 * bandwidth therefore ends with the receiver's own word, never with the last send.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/random.h>

#include "backends/registry.h"
#include "control/control.h"
#include "host/netdev.h"
#include "tcp.h"

static int tcp_probe(device_callback callback, void *userdata) {
	struct ifaddrs *list, *i;
	int r = 0;

	if (getifaddrs(&list) < 0)
		return failure(-errno, EXIT_INTERNAL, "cannot list the network interfaces: %s", strerror(errno));
	for (i = list; i && r == 0; i = i->ifa_next) {
		struct device d = { .backend = "tcp" };
		struct sockaddr_storage a = { 0 };
		struct netdev n;

		if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
			continue;
		memcpy(&a, i->ifa_addr,
		       i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
		netdev_read("", i->ifa_name, &n);
		(void) snprintf(d.name, sizeof(d.name), "%s", n.name);
		(void) snprintf(d.layer, sizeof(d.layer), "%s", n.layer);
		(void) snprintf(d.state, sizeof(d.state), "%s", n.up ? "up" : "down");
		address_format(&a, false, d.address, sizeof(d.address));
		d.mtu = n.mtu;
		d.rate_gbit_s = n.rate_gbit_s;
		r = callback(&d, userdata);
	}
	freeifaddrs(list);
	return r;
}

static struct session *tcp_close(struct session *session) {
	struct tcp_session *s = tcp(session);

	if (!s)
		return NULL;
	s->fd = close_fd(s->fd);
	s->listener = close_fd(s->listener);
	s->initiator = tcp_initiator_close(s->initiator);
	s->target = tcp_target_close(s->target);
	free(s->lent);
	free(s);
	return NULL;
}

static void tcp_closep(struct tcp_session **s) {
	(void) tcp_close((struct session *) *s);
}

/* In network order. Control connections are IPv4 or IPv6. */
static in_port_t *port_of(struct sockaddr_storage *a) {
	return a->ss_family == AF_INET ? &((struct sockaddr_in *) a)->sin_port
				       : &((struct sockaddr_in6 *) a)->sin6_port;
}

/* The server listens on the address that the client already reached, on a port of the kernel's choice. */
static int listen_for_data(struct tcp_session *s, const struct sockaddr_storage *local) {
	struct sockaddr_storage a = *local;
	socklen_t length = sizeof(a);

	*port_of(&a) = 0;
	s->listener = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listener < 0 || bind(s->listener, (struct sockaddr *) &a, sizeof(a)) < 0 || listen(s->listener, 8) < 0 ||
	    getsockname(s->listener, (struct sockaddr *) &s->peer, &length) < 0)
		return failure(-errno, EXIT_HOST, "cannot listen for the tcp test's own connection: %s",
			       strerror(errno));
	if (getrandom(s->cookie, sizeof(s->cookie), 0) != sizeof(s->cookie))
		return failure(-errno, EXIT_INTERNAL, "the random number generator gave nothing: %s", strerror(errno));
	return 0;
}

static void describe(struct tcp_session *s, const struct open_arguments *a) {
	struct netdev n;

	address_format(a->local, false, s->session.address, sizeof(s->session.address));
	if (netdev_of_address(a->local, &n) < 0)
		return;
	(void) snprintf(s->session.device, sizeof(s->session.device), "%s", n.name);
	(void) snprintf(s->session.layer, sizeof(s->session.layer), "%s", n.layer);
	s->session.mtu = n.mtu;
	s->session.rate_gbit_s = netdev_rate(&n, job_flows(a->job));
}

/* Of transfers: the target's word ends each, so that it lies in the target's memory. */
static int open_transfer(struct tcp_session *s, const struct job *job, uint32_t channel) {
	s->vtable = backend_tcp;
	s->session.backend = &s->vtable;
	s->session.level = LEVEL_DELIVERY;
	return s->role == ROLE_CLIENT ? tcp_initiator_open(s, job) : tcp_target_open(s, job, channel);
}

static int tcp_open(const struct open_arguments *a, struct session **ret) {
	_cleanup_(tcp_closep) struct tcp_session *s = NULL;
	const struct job *job = a->job;
	bool sleeps = job->completion == COMPLETION_EVENT;
	int r = 0;

	s = calloc(1, sizeof(*s));
	if (!s)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a tcp session");
	*s = (struct tcp_session) {
		.session = { .level = LEVEL_INJECT, .connection = "stream" },
		.initial_rtt_us = -1,
		.arena = *a->arena,
		.fd = -1,
		.listener = -1,
		.wake_fd = a->wake_fd,
		.role = a->role,
		.blocking_receive = sleeps && job->kind == KIND_LATENCY,
		/* Two ends that both block in send() with full buffers would wait for each other for ever. */
		.send_flags = MSG_NOSIGNAL | (sleeps && !job->bidirectional ? 0 : MSG_DONTWAIT),
		.timeout_ns = job->timeout_ns,
		.peer = *a->peer,
		.lent_size = a->arena->slots + 1,
	};
	s->lent = calloc(s->lent_size, sizeof(*s->lent));
	if (!s->lent)
		return failure(-ENOMEM, EXIT_HOST, "no memory for %u slots", s->lent_size);
	describe(s, a);
	if (job_has_lanes(job))
		r = open_transfer(s, job, a->channel);
	if (r == 0 && s->role == ROLE_SERVER)
		r = listen_for_data(s, a->local);
	if (r < 0)
		return r;
	*ret = &s->session;
	s = NULL;
	return 0;
}

static int tcp_local_address(struct session *session, struct address *ret) {
	struct tcp_session *s = tcp(session);

	ret->length = 0;
	if (s->role == ROLE_CLIENT)
		return 0; /* the client connects; nobody needs to find it */
	memcpy(ret->bytes, s->cookie, TCP_COOKIE);
	memcpy(ret->bytes + TCP_COOKIE, port_of(&s->peer), sizeof(in_port_t));
	ret->length = TCP_COOKIE + sizeof(in_port_t);
	return 0;
}

static int connect_client(struct tcp_session *s, const struct address *peer) {
	char host[80];
	int r;

	if (peer->length != TCP_COOKIE + sizeof(in_port_t))
		return failure(-EPROTO, EXIT_PEER, "the peer's tcp address has %zu bytes; refused", peer->length);
	/* Only the port is the server's to say: it is reached where control reached it, and sends us nowhere else. */
	memcpy(port_of(&s->peer), peer->bytes + TCP_COOKIE, sizeof(in_port_t));
	address_format(&s->peer, false, host, sizeof(host));
	r = socket_connect(host, ntohs(*port_of(&s->peer)), s->session.address, s->timeout_ns, &s->fd);
	if (r < 0)
		return r;
	r = socket_write(s->fd, peer->bytes, TCP_COOKIE, monotonic_ns() + s->timeout_ns);
	return r < 0 ? failure(r, EXIT_PEER, "lost the peer while connecting for data: %s", strerror(-r)) : 0;
}

/*
 * Accepts until somebody brings the cookie: strangers are turned away, and cannot delay the peer beyond the deadline.
 */
static int connect_server(struct tcp_session *s) {
	uint64_t deadline = monotonic_ns() + s->timeout_ns;
	uint8_t cookie[TCP_COOKIE];

	for (;;) {
		struct pollfd p[2] = { { .fd = s->listener, .events = POLLIN },
				       { .fd = s->wake_fd, .events = POLLIN } };
		uint64_t now = monotonic_ns();

		if (now >= deadline || poll(p, 2, (int) ((deadline - now) / NSEC_PER_MSEC + 1)) == 0)
			return failure(-ETIMEDOUT, EXIT_PEER, "the client did not connect for data within %.0f s; "
				       "does a firewall block ports above 32767?", (double) s->timeout_ns / 1e9);
		s->fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (s->fd < 0 && p[1].revents)
			return failure(-ECONNRESET, EXIT_PEER,
				       "the client gave up before it connected for data; its own messages say why");
		if (s->fd < 0)
			continue;
		if (socket_read(s->fd, cookie, TCP_COOKIE, MIN(deadline, monotonic_ns() + NSEC_PER_SEC)) == 0 &&
		    memcmp(cookie, s->cookie, TCP_COOKIE) == 0)
			return 0;
		s->fd = close_fd(s->fd);
	}
}

static int read_info(const struct tcp_session *s, struct tcp_info *ret) {
	socklen_t length = sizeof(*ret);

	memset(ret, 0, sizeof(*ret));
	return getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, ret, &length);
}

static int tcp_connect(struct session *session, const struct address *peer) {
	struct tcp_session *s = tcp(session);
	/*
	 * How long a blocked call may miss what the peer says on the control connection:
	 * the end of each phase waits for it.
	 */
	struct timeval slice = { .tv_usec = 10000 };
	struct tcp_info info;
	int r, on = 1;

	r = s->role == ROLE_CLIENT ? connect_client(s, peer) : connect_server(s);
	if (r < 0)
		return r;
	s->listener = close_fd(s->listener);
	/* Blocking or not is said with each call. */
	if (fcntl(s->fd, F_SETFL, 0) < 0 || setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
	    setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof(slice)) < 0 ||
	    setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof(slice)) < 0)
		return failure(-errno, EXIT_INTERNAL, "cannot set up the data connection: %s", strerror(errno));
	if (read_info(s, &info) == 0)
		s->initial_rtt_us = info.tcpi_rtt;
	return 0;
}

static json_t *known_or_null(bool known, int64_t n) {
	return known ? json_integer(n) : json_null();
}

/* The kernel's own view of the connection. Transfers have several, of which one would say little. */
static void tcp_describe(struct session *session, json_t *record) {
	struct tcp_session *s = tcp(session);
	struct tcp_info info = { 0 };
	bool known = !s->initiator && !s->target && read_info(s, &info) == 0;

	if (s->initial_rtt_us < 0)
		return;
	(void) json_object_set_new(record, "tcp", json_pack("{s:o, s:I, s:o}", "retransmissions",
		known_or_null(known, (int64_t) info.tcpi_total_retrans - s->retransmissions_before), "initial_rtt_us",
		(json_int_t) s->initial_rtt_us, "window_bytes",
		known_or_null(known, (int64_t) info.tcpi_snd_cwnd * info.tcpi_snd_mss)));
}

static void tcp_begin(struct session *session, uint64_t size) {
	struct tcp_session *s = tcp(session);
	struct tcp_info info;

	s->size = size;
	if (read_info(s, &info) == 0)
		s->retransmissions_before = info.tcpi_total_retrans;
}

int tcp_lost(int error, const char *what) {
	if (error == ECONNRESET || error == EPIPE || error == ETIMEDOUT || error == 0)
		return failure(-ECONNRESET, EXIT_PEER, "lost the peer: its data connection was %s while %s",
			       error ? "reset" : "closed", what);
	return failure(-error, EXIT_INTERNAL, "%s failed: %s", what, strerror(error));
}

/* Hands the kernel what is left of the message under way. 1: all taken; 0: not yet; negative. */
static inline int flush(struct tcp_session *s, int flags) {
	const uint8_t *p = arena_tx(&s->arena, s->tx_slot) + (s->size - s->tx_left);
	struct pollfd full = { .fd = s->fd, .events = POLLOUT };
	ssize_t n;

	/*
	 * Asks by poll(), which takes no lock of the socket: a spinning send() would keep the acknowledgements waiting.
	 */
	if (s->tx_full && poll(&full, 1, 0) == 0)
		return 0;
	n = send(s->fd, p, s->tx_left, flags);
	s->tx_full = n < (ssize_t) s->tx_left;
	if (likely(n > 0)) {
		s->tx_left -= (uint64_t) n;
		return s->tx_left == 0;
	}
	return errno == EAGAIN || errno == EINTR ? 0 : tcp_lost(errno, "sending");
}

static int tcp_post(struct session *session, const struct work *w) {
	struct tcp_session *s = tcp(session);

	if (unlikely(s->tx_left > 0))
		return -EAGAIN; /* a stream: one after the other */
	s->tx_slot = w->slot;
	s->tx_left = s->size;
	return flush(s, s->send_flags);
}

static int tcp_post_receive(struct session *session, uint32_t slot, uint64_t size) {
	struct tcp_session *s = tcp(session);

	(void) size;
	s->lent[s->lent_head] = slot;
	s->lent_head = s->lent_head + 1 == s->lent_size ? 0 : s->lent_head + 1;
	return 0;
}

/* Takes what has arrived of one message. 1: it is complete; 0: not yet; negative. */
static inline int take(struct tcp_session *s, int flags, struct completion *ret) {
	uint32_t slot = s->lent[s->lent_tail];
	ssize_t n;

	n = recv(s->fd, arena_rx(&s->arena, slot) + s->rx_done, s->size - s->rx_done, flags);
	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : tcp_lost(n < 0 ? errno : 0, "receiving");
	s->rx_done += (uint64_t) n;
	if (s->rx_done < s->size)
		return 0;
	s->rx_done = 0;
	s->lent_tail = s->lent_tail + 1 == s->lent_size ? 0 : s->lent_tail + 1;
	*ret = (struct completion) { .kind = COMPLETION_RECEIVE, .slot = slot };
	return 1;
}

/*
 * One message at most a call: a second recv() after a whole one would find nothing
 * in a ping-pong, and cost a system call.
 */
static inline int progress(struct tcp_session *s, struct completion *ret, int receive_flags) {
	int r, n = 0;

	if (unlikely(s->tx_left > 0)) {
		r = flush(s, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (r < 0)
			return r;
		if (r > 0)
			ret[n++] = (struct completion) { .kind = COMPLETION_LOCAL, .slot = s->tx_slot };
	}
	if (s->lent_tail != s->lent_head) {
		r = take(s, receive_flags, &ret[n]);
		if (unlikely(r < 0))
			return r;
		n += r;
	}
	return n;
}

static int tcp_poll(struct session *session, struct completion *ret, unsigned max) {
	(void) max; /* two at most */
	return progress(tcp(session), ret, MSG_DONTWAIT);
}

static int tcp_wait(struct session *session, struct completion *ret, unsigned max, uint64_t timeout_ns) {
	struct tcp_session *s = tcp(session);
	struct pollfd p[2] = { { .fd = s->fd }, { .fd = s->wake_fd, .events = POLLIN } };
	int n;

	(void) max;
	if (s->blocking_receive && s->tx_left == 0 && s->lent_tail != s->lent_head)
		return progress(s, ret, 0);
	n = progress(s, ret, MSG_DONTWAIT);
	if (n != 0)
		return n;
	p[0].events = (short) ((s->tx_left > 0 ? POLLOUT : 0) | (s->lent_tail != s->lent_head ? POLLIN : 0));
	if (p[0].events == 0)
		p[0].fd = -1; /* else a hang-up would wake it again and again */
	/* ppoll(2): of a pace's rests, the last is shorter than a millisecond. */
	if (ppoll(p, 2, &(struct timespec) { .tv_sec = (time_t) (timeout_ns / NSEC_PER_SEC),
					     .tv_nsec = (long) (timeout_ns % NSEC_PER_SEC) }, NULL) <= 0)
		return 0;
	return progress(s, ret, MSG_DONTWAIT);
}

const struct backend backend_tcp = {
	.facts = &backend_facts[BACKEND_TCP],
	.version = BACKEND_VERSION,
	.probe = tcp_probe,
	.open = tcp_open,
	.local_address = tcp_local_address,
	.connect = tcp_connect,
	.begin = tcp_begin,
	.lanes = &(const struct lane_hooks) { .place = tcp_place, .post_list = backend_post_each, .arm = tcp_arm },
	.post = tcp_post,
	.post_receive = tcp_post_receive,
	.poll = tcp_poll,
	.wait = tcp_wait,
	.describe = tcp_describe,
	.close = tcp_close,
};
