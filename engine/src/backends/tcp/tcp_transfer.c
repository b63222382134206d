/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The initiator of transfers over tcp: one-sided operations as a stream has to do them. Requests wait until
 * a list is whole, and go to the kernel with as few calls as it allows, payloads straight from the buffer;
 * neither end ever blocks in a call, so two full socket buffers cannot hold each other.
 *
 * The stream keeps the order, so all that is known of the requests under way are four counts.
 */
#include <endian.h>
#include <limits.h>
#include <poll.h>

#include "base/message.h"
#include "tcp.h"

/* On the wire. */
enum { ACKNOWLEDGE = 1 };

static uint8_t code_of(enum op op) {
	return op == OP_SEND ? 3 : op == OP_READ ? 2 : 1;
}

/*
 * A long list asks for an acknowledgement after so many bytes, too, so that its first transfers need not wait
 * for its last: at 100 Gb/s 20 us, of which the word takes about one at either end.
 */
#define ACKNOWLEDGE_BYTES (UINT64_C(256) << 10)

enum {
	ACKNOWLEDGEMENTS = 64,          /* read at a time */
	RING_MIN = 64,
};

struct place {
	uint64_t offset, size;
};

struct tcp_initiator {
	uint8_t *base;
	enum op op;
	struct place *places;           /* by slot */
	uint8_t (*requests)[TCP_REQUEST]; /* ring of what is posted and not yet reported, as is `slots` */
	uint32_t *slots;
	uint64_t mask;                  /* of the ring's indices */

	/* Numbers of requests from the first one on, each at most the one before it. */
	uint64_t posted, sent, complete, reported;
	/* the kernel has so much of the next one to be sent, the request's own bytes included */
	uint64_t sent_bytes;
	uint64_t come_bytes;            /* read: so much of the next one to be complete is here */
	uint64_t unasked;               /* bytes of writes since an acknowledgement was last asked for */
	uint8_t words[ACKNOWLEDGEMENTS * TCP_ACKNOWLEDGEMENT];
	size_t word_bytes;              /* of a word that has not come whole */
};

void tcp_request_write(const struct tcp_request *r, uint8_t ret[TCP_REQUEST]) {
	uint32_t size = htobe32((uint32_t) r->size);
	uint64_t offset = htobe64(r->offset);

	ret[0] = code_of(r->op);
	ret[1] = r->acknowledge ? ACKNOWLEDGE : 0;
	ret[2] = ret[3] = 0;
	memcpy(ret + 4, &size, sizeof(size));
	memcpy(ret + 8, &offset, sizeof(offset));
}

int tcp_request_read(const uint8_t bytes[TCP_REQUEST], enum op op, uint64_t length, struct tcp_request *ret) {
	struct tcp_request r = { .op = op, .acknowledge = bytes[1] == ACKNOWLEDGE };
	uint32_t size;

	if (bytes[0] != code_of(op) || bytes[1] > ACKNOWLEDGE || bytes[2] || bytes[3])
		return failure(-EPROTO, EXIT_PEER,
			       "the peer's request is no %s: it begins with %02x %02x %02x %02x; refused",
			       op_name((int) op), bytes[0], bytes[1], bytes[2], bytes[3]);
	memcpy(&size, bytes + 4, sizeof(size));
	memcpy(&r.offset, bytes + 8, sizeof(r.offset));
	r.size = be32toh(size);
	r.offset = be64toh(r.offset);
	if (r.size == 0 || r.offset > length || r.size > length - r.offset)
		return failure(-EPROTO, EXIT_PEER,
			       "the peer asks for a %s of %llu bytes at %llu, and the buffer has %llu; refused",
			       op_name((int) op), (unsigned long long) r.size, (unsigned long long) r.offset,
			       (unsigned long long) length);
	*ret = r;
	return 0;
}

int64_t tcp_send_some(struct tcp_session *s, struct iovec *iov, size_t n, uint64_t total) {
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
	struct pollfd full = { .fd = s->fd, .events = POLLOUT };
	ssize_t r;

	/* As in tcp.c: poll() takes no lock of the socket. */
	if (s->tx_full && poll(&full, 1, 0) == 0)
		return 0;
	r = sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	s->tx_full = r < (ssize_t) total;
	if (likely(r > 0))
		return r;
	return errno == EAGAIN || errno == EINTR ? 0 : tcp_lost(errno, "sending");
}

int64_t tcp_receive_some(struct tcp_session *s, struct iovec *iov, size_t n, const char *what) {
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t r = recvmsg(s->fd, &m, MSG_DONTWAIT);

	if (likely(r > 0))
		return r;
	if (r == 0)
		return -ENODATA;
	return errno == EAGAIN || errno == EINTR ? 0 : tcp_lost(errno, what);
}

static inline uint64_t wire_bytes(const struct tcp_initiator *i, uint64_t number) {
	return TCP_REQUEST + (i->op == OP_READ ? 0 : i->places[i->slots[number & i->mask]].size);
}

/* What is to be sent next, from the byte on that the kernel has not taken. */
static size_t gather_requests(const struct tcp_initiator *i, struct iovec iov[IOV_MAX], uint64_t *ret_total) {
	uint64_t skip = i->sent_bytes, total = 0;
	size_t n = 0;

	for (uint64_t k = i->sent; k < i->posted && n + 2 <= IOV_MAX && total < TCP_GATHER_BYTES; k++) {
		const struct place *p = &i->places[i->slots[k & i->mask]];

		if (skip < TCP_REQUEST)
			iov[n++] = (struct iovec) { .iov_base = i->requests[k & i->mask] + skip,
						    .iov_len = TCP_REQUEST - skip };
		total += wire_bytes(i, k) - skip;
		skip = skip > TCP_REQUEST ? skip - TCP_REQUEST : 0;
		if (i->op != OP_READ)
			iov[n++] = (struct iovec) { .iov_base = i->base + p->offset + skip, .iov_len = p->size - skip };
		skip = 0;
	}
	*ret_total = total;
	return n;
}

/*
 * Sends what is posted, as far as the kernel takes it.
 * The last of it asks for an acknowledgement already. 0 or negative.
 */
static int transmit(struct tcp_session *s) {
	struct tcp_initiator *i = s->initiator;
	struct iovec iov[IOV_MAX];

	while (i->sent < i->posted) {
		uint64_t total;
		size_t n = gather_requests(i, iov, &total);
		int64_t r = tcp_send_some(s, iov, n, total);

		if (r <= 0)
			return (int) r;
		for (i->sent_bytes += (uint64_t) r; i->sent < i->posted && i->sent_bytes >= wire_bytes(i, i->sent);
		     i->sent++)
			i->sent_bytes -= wire_bytes(i, i->sent);
	}
	return 0;
}

/* Sends the rest of a list that somebody waits for although it is not at its end. */
static int transmit_all(struct tcp_session *s) {
	struct tcp_initiator *i = s->initiator;

	/* Where it is under way already it has asked: nothing is sent that does not end so. */
	i->requests[(i->posted - 1) & i->mask][1] = ACKNOWLEDGE;
	i->unasked = 0;
	return transmit(s);
}

void tcp_place(struct session *session, uint32_t slot, uint32_t channel, uint64_t offset, uint64_t size) {
	struct tcp_initiator *i = tcp(session)->initiator;

	(void) channel; /* a connection is one */
	i->places[slot] = (struct place) { .offset = offset, .size = size };
}

static int initiator_post(struct session *session, const struct work *w) {
	struct tcp_session *s = tcp(session);
	struct tcp_initiator *i = s->initiator;
	const struct place *p = &i->places[w->slot];
	bool last = !w->more || w->flush;
	struct tcp_request r = { .op = i->op, .offset = i->op == OP_SEND ? 0 : p->offset, .size = p->size };

	if (unlikely(i->posted - i->reported > i->mask))
		return -EAGAIN;
	i->unasked += p->size;
	r.acknowledge = last || i->unasked >= ACKNOWLEDGE_BYTES;
	if (r.acknowledge)
		i->unasked = 0;
	tcp_request_write(&r, i->requests[i->posted & i->mask]);
	i->slots[i->posted++ & i->mask] = w->slot;
	return last ? transmit(s) : 0;
}

/* Writes: the last word that came whole counts. 0 or negative. */
static int take_acknowledgements(struct tcp_session *s) {
	struct tcp_initiator *i = s->initiator;
	struct iovec iov = { .iov_base = i->words + i->word_bytes, .iov_len = sizeof(i->words) - i->word_bytes };
	int64_t r = tcp_receive_some(s, &iov, 1, "writing");
	uint64_t count;
	size_t whole;

	if (r <= 0)
		return r == -ENODATA ? tcp_lost(0, "writing") : (int) r;
	i->word_bytes += (size_t) r;
	whole = i->word_bytes / TCP_ACKNOWLEDGEMENT * TCP_ACKNOWLEDGEMENT;
	if (whole == 0)
		return 0;
	memcpy(&count, i->words + whole - TCP_ACKNOWLEDGEMENT, sizeof(count));
	i->word_bytes -= whole;
	memmove(i->words, i->words + whole, i->word_bytes);
	count = be64toh(count);
	if (count <= i->complete || count > i->sent)
		return failure(-EPROTO, EXIT_PEER,
			       "the peer acknowledges %llu writes after %llu, and %llu were sent; refused",
			       (unsigned long long) count, (unsigned long long) i->complete,
			       (unsigned long long) i->sent);
	i->complete = count;
	return 0;
}

static size_t gather_payloads(const struct tcp_initiator *i, struct iovec iov[IOV_MAX]) {
	uint64_t skip = i->come_bytes, total = 0;
	size_t n = 0;

	for (uint64_t k = i->complete; k < i->sent && n < IOV_MAX && total < TCP_GATHER_BYTES; k++, skip = 0) {
		const struct place *p = &i->places[i->slots[k & i->mask]];

		iov[n++] = (struct iovec) { .iov_base = i->base + p->offset + skip, .iov_len = p->size - skip };
		total += p->size - skip;
	}
	return n;
}

/* Reads: payloads land where they belong. 0 or negative. */
static int take_payloads(struct tcp_session *s, bool ready) {
	struct tcp_initiator *i = s->initiator;
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	struct iovec iov[IOV_MAX];
	int64_t r;

	/* The list of places is long, so it is made only where there is something for it. */
	if (!ready && poll(&p, 1, 0) == 0)
		return 0;
	r = tcp_receive_some(s, iov, gather_payloads(i, iov), "reading");
	if (r <= 0)
		return r == -ENODATA ? tcp_lost(0, "reading") : (int) r;
	for (i->come_bytes += (uint64_t) r; i->complete < i->sent; i->complete++) {
		uint64_t size = i->places[i->slots[i->complete & i->mask]].size;

		if (i->come_bytes < size)
			break;
		i->come_bytes -= size;
	}
	return 0;
}

static inline int report(struct tcp_initiator *i, struct completion *ret, unsigned max) {
	unsigned n = 0;

	while (n < max && i->reported < i->complete)
		ret[n++] = (struct completion) { .kind = COMPLETION_LOCAL, .slot = i->slots[i->reported++ & i->mask] };
	return (int) n;
}

static inline int progress(struct tcp_session *s, bool ready, struct completion *ret, unsigned max) {
	struct tcp_initiator *i = s->initiator;
	int r = 0;

	if (i->sent < i->posted)
		r = transmit_all(s);
	if (r == 0 && i->complete == i->reported && i->complete < i->sent)
		r = i->op == OP_READ ? take_payloads(s, ready) : take_acknowledgements(s);
	return unlikely(r < 0) ? r : report(i, ret, max);
}

static int initiator_poll(struct session *session, struct completion *ret, unsigned max) {
	return progress(tcp(session), false, ret, max);
}

/* What has come it asks for only when it is woken: one call less, and it does not let anybody sleep. */
int tcp_initiator_arm(struct tcp_session *s, struct completion *ret, unsigned max, struct pollfd *alarm) {
	struct tcp_initiator *i = s->initiator;
	int r = 0;

	if (alarm->revents)
		r = progress(s, alarm->revents & POLLIN, ret, max);
	else if (i->sent < i->posted)
		r = transmit_all(s);
	if (r == 0 && i->complete > i->reported)
		r = report(i, ret, max);
	*alarm = tcp_alarm(s, r == 0 && i->reported < i->posted, r == 0 && i->sent < i->posted);
	return r;
}

int tcp_arm(struct session *session, struct completion *ret, unsigned max, struct pollfd alarms[BACKEND_ALARMS]) {
	struct tcp_session *s = tcp(session);

	return s->initiator ? tcp_initiator_arm(s, ret, max, alarms) : tcp_target_arm(s, alarms);
}

struct tcp_initiator *tcp_initiator_close(struct tcp_initiator *i) {
	if (!i)
		return NULL;
	free(i->places);
	free(i->requests);
	free(i->slots);
	free(i);
	return NULL;
}

int tcp_initiator_open(struct tcp_session *s, const struct job *job) {
	uint64_t ring = RING_MIN;
	struct tcp_initiator *i;

	while (ring < job->outstanding)
		ring *= 2;
	s->initiator = i = calloc(1, sizeof(*i));
	if (!i)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a tcp session");
	*i = (struct tcp_initiator) { .base = s->arena.tx, .op = job->op, .mask = ring - 1 };
	i->places = calloc(s->arena.slots, sizeof(*i->places));
	i->requests = calloc(ring, sizeof(*i->requests));
	i->slots = calloc(ring, sizeof(*i->slots));
	if (!i->places || !i->requests || !i->slots)
		return failure(-ENOMEM, EXIT_HOST, "no memory for %u slots", s->arena.slots);
	s->vtable.post = initiator_post;
	s->vtable.poll = initiator_poll;
	s->vtable.wait = NULL; /* lanes are armed */
	return 0;
}
