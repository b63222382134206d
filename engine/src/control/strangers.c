/* SPDX-License-Identifier: Apache-2.0 */
#include "strangers.h"

#include <netinet/in.h>

#include "base/clock.h"

static uint64_t origin_of(const struct sockaddr_storage *a) {
	const struct in6_addr *six = &((const struct sockaddr_in6 *) a)->sin6_addr;
	uint64_t network;

	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *) a)->sin_addr.s_addr;
	/* ::ffff:192.0.2.1 is an address of IPv4 */
	if (IN6_IS_ADDR_V4MAPPED(six))
		return six->s6_addr32[3];
	memcpy(&network, six, sizeof(network));
	return network;
}

/* After one of this origin has come or gone. */
static void count_share(struct strangers *s, uint64_t origin) {
	unsigned share = 0;

	for (size_t i = 0; i < STRANGERS_MAX; i++)
		share += s->places[i].greeting.control && s->places[i].origin == origin;
	for (size_t i = 0; i < STRANGERS_MAX; i++)
		if (s->places[i].origin == origin)
			s->places[i].share = share;
}

/* Says the failure that was kept apart. Only so many lines, whatever comes: a flood must not fill a disk. */
static void say_refused(struct strangers *s) {
	uint64_t now = monotonic_ns();

	if (now - s->minute_ns >= 60 * NSEC_PER_SEC) {
		if (s->refused > STRANGERS_LINES)
			notice("refused %u more connections without a proof of the token",
			       s->refused - STRANGERS_LINES);
		s->minute_ns = now;
		s->refused = 0;
	}
	if (s->refused++ < STRANGERS_LINES)
		notice("%s", failure_text());
}

static void leave(struct strangers *s, struct stranger *one) {
	one->greeting.control = NULL;
	s->n--;
	count_share(s, one->origin);
}

static void dismiss(struct strangers *s, struct stranger *one) {
	say_refused(s);
	greeting_refuse(&one->greeting);
	leave(s, one);
}

/* Whether `a` goes before `b` where one must. */
static bool goes_first(const struct stranger *a, const struct stranger *b) {
	if (a->share != b->share)
		return a->share > b->share;
	if (a->greeting.heard != b->greeting.heard)
		return b->greeting.heard;
	return a->since_ns < b->since_ns;
}

static void make_room(struct strangers *s) {
	struct stranger *first = &s->places[0];

	for (size_t i = 1; i < STRANGERS_MAX; i++)
		if (goes_first(&s->places[i], first))
			first = &s->places[i];
	failure_reset();
	(void) failure(-EBUSY, EXIT_PEER, "%s had to go: %d connections wait without a proof of the token",
		       first->greeting.control->peer_name, STRANGERS_MAX);
	dismiss(s, first);
}

static int admit(struct strangers *s, int fd, bool has_token) {
	struct stranger one = { .since_ns = monotonic_ns() };
	size_t i = 0;
	int r;

	r = greeting_begin(fd, has_token, &one.greeting);
	if (r < 0) {
		if (r != -ECONNRESET) /* scanners of ports do that, and it is no news */
			say_refused(s);
		greeting_refuse(&one.greeting);
		return r;
	}
	if (s->n == STRANGERS_MAX)
		make_room(s);
	while (s->places[i].greeting.control)
		i++;
	one.origin = origin_of(&one.greeting.control->peer);
	s->places[i] = one;
	s->n++;
	count_share(s, one.origin);
	return 0;
}

void strangers_admit(struct strangers *s, int fd, bool has_token) {
	failure_keep_apart(true);
	(void) admit(s, fd, has_token);
	failure_keep_apart(false);
}

size_t strangers_poll(const struct strangers *s, struct pollfd *ret, unsigned *ret_places) {
	size_t n = 0;

	for (unsigned i = 0; i < STRANGERS_MAX; i++)
		if (s->places[i].greeting.control) {
			ret[n] = (struct pollfd) { .fd = s->places[i].greeting.control->fd, .events = POLLIN };
			ret_places[n++] = i;
		}
	return n;
}

struct control *strangers_hear(struct strangers *s, unsigned place, const char *token_file) {
	struct stranger *one = &s->places[place];
	struct control *c = NULL;
	int r;

	failure_keep_apart(true);
	r = token_read(token_file, &s->token);
	if (r == 0)
		r = greeting_hear(&one->greeting, &s->token);
	explicit_bzero(&s->token, sizeof(s->token));
	if (r > 0) {
		c = one->greeting.control;
		explicit_bzero(&one->greeting, sizeof(one->greeting));
		leave(s, one);
	} else if (r < 0)
		dismiss(s, one);
	failure_keep_apart(false);
	return c;
}

void strangers_expire(struct strangers *s) {
	uint64_t now = monotonic_ns();

	failure_keep_apart(true);
	for (size_t i = 0; i < STRANGERS_MAX; i++) {
		struct stranger *one = &s->places[i];

		if (!one->greeting.control || now - one->since_ns < STRANGER_NS)
			continue;
		failure_reset();
		(void) failure(-ETIMEDOUT, EXIT_PEER, "%s did not greet within %d s; dropped",
			       one->greeting.control->peer_name, (int) (STRANGER_NS / NSEC_PER_SEC));
		dismiss(s, one);
	}
	failure_keep_apart(false);
}

uint64_t strangers_deadline(const struct strangers *s) {
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < STRANGERS_MAX; i++)
		if (s->places[i].greeting.control)
			first = MIN(first, s->places[i].since_ns + STRANGER_NS);
	return first;
}

void strangers_close(struct strangers *s) {
	for (size_t i = 0; i < STRANGERS_MAX; i++)
		s->places[i].greeting.control = control_close(s->places[i].greeting.control);
	s->n = 0;
	token_forget(&s->token);
}
